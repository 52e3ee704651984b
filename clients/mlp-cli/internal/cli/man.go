//go:build !urfave_cli_no_docs

package cli

// Man returns the manual page: every command and option as the program knows them.
func Man() (string, error) {
	return newApp(&Env{Getenv: func(string) string { return "" }}).ToManWithSection(1)
}
