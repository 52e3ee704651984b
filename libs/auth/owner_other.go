//go:build !unix

package auth

import "io/fs"

// CheckSecretOwner takes every file: files have no owner here that could be compared.
func CheckSecretOwner(string, fs.FileInfo) error { return nil }
