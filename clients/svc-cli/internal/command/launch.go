package command

import (
	"bufio"
	"errors"
	"fmt"
)

// Launch prints the address of a local page and opens it: launch makes addresses that open it once, and every line on
// standard input prints another. Only the address is printed, never the token behind it.
func (e *Env) Launch(name, url string, launch func() string, browser bool) {
	first := launch()
	e.Printf("%s: %s\nopen once: %s\n", name, url, first)
	if browser && e.OpenBrowser != nil {
		if err := e.OpenBrowser(first); err != nil {
			fmt.Fprintf(e.Stderr, "warning: no browser was opened: %s\n", Clean(err.Error()))
		}
	}
	ignoreBackgroundReads()
	// A read from a terminal cannot be cancelled; it ends with the process, which holds nothing for it.
	go func() {
		in := bufio.NewReader(e.Stdin)
		for {
			_, err := in.ReadSlice('\n')
			switch {
			case err == nil:
				e.Printf("open once: %s\n", launch())
			case !errors.Is(err, bufio.ErrBufferFull): // a long line is one wish
				return
			}
		}
	}()
}
