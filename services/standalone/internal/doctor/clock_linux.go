package doctor

import "golang.org/x/sys/unix"

// isSynchronized reports whether the kernel considers its clock synchronized.
func isSynchronized() (bool, error) {
	var now unix.Timex // no mode is set: it only reads
	if _, err := unix.Adjtimex(&now); err != nil {
		return false, err
	}
	return now.Status&unix.STA_UNSYNC == 0, nil
}
