//go:build !linux

package doctor

import "errors"

func isSynchronized() (bool, error) { return false, errors.ErrUnsupported }
