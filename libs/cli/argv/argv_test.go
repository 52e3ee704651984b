package argv_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/argv"
)

func testApp() *cli.App {
	return &cli.App{Name: "svc", Flags: []cli.Flag{&cli.BoolFlag{Name: "version"}, &cli.StringFlag{Name: "context", Aliases: []string{"c"}}},
		Commands: []*cli.Command{
			{Name: "run", Subcommands: []*cli.Command{
				{Name: "list", Aliases: []string{"ls"}, Flags: []cli.Flag{&cli.StringFlag{Name: "store"}, &cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "help", Aliases: []string{"h"}}}},
				{Name: "pick", Flags: []cli.Flag{&rowFlag{cli.StringSliceFlag{Name: "id"}}, &cli.StringFlag{Name: "store"}}},
				{Name: "create", Flags: []cli.Flag{&cli.StringFlag{Name: "store"}, &cli.IntFlag{Name: "n"}}},
			}},
			{Name: "hidden", Hidden: true},
		}}
}

// rowFlag takes several values in a row.
type rowFlag struct{ cli.StringSliceFlag }

func (*rowFlag) Several() bool { return true }

func TestArrange(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, line, want, sentence, hint string }{
		{"options after arguments", "run create FILE --store X", "svc run create --store X -- FILE", "", ""},
		{"options between arguments", "run create A --store X B", "svc run create --store X -- A B", "", ""},
		{"joined value", "run create FILE --store=X", "svc run create --store=X -- FILE", "", ""},
		{"a value that looks like an option", "run create --store --x FILE", "svc run create --store --x -- FILE", "", ""},
		{"-- ends options", "run create -- --store", "svc run create -- --store", "", ""},
		{"a dash is an argument", "run create -", "svc run create -- -", "", ""},
		{"a negative number is an argument", "run create -3", "svc run create -- -3", "", ""},
		{"values in a row", "run pick FILE --id a b --store X --id c", "svc run pick --id a --id b --store X --id c -- FILE", "", ""},
		{"a row before the arguments", "run pick --id a FILE", "svc run pick --id a -- FILE", "", ""},
		{"a joined value starts no row", "run pick FILE --id=a b", "svc run pick --id=a -- FILE b", "", ""},
		{"an alias", "run ls --json", "svc run list --json", "", ""},
		{"help beside arguments", "run list --store X A --help B", "svc run list --help", "", ""},
		{"help of a command without one", "run create -h", "svc run create --help", "", ""},
		{"help of all", "--help run", "svc --help", "", ""},
		{"a global option before", "-c x run list", "svc -c x run list", "", ""},
		{"a group alone", "run", "svc run", "", ""},
		{"a global option after", "run list --context 'x", "", "--context is a global option and must come before the subcommand: svc --context ''\\''x' run list", ""},
		{"an unknown command", "rn", "", `unknown command "rn" for svc`, "did you mean: svc run"},
		{"an unknown subcommand", "run zzzzzz", "", `unknown command "zzzzzz" for svc run`, "see: svc run --help"},
		{"an unknown option", "run list --sotre X", "", "unknown option --sotre for svc run list", "did you mean: --store"},
		{"an unknown letter", "run list -q", "", "unknown option -q for svc run list", "see: svc run list --help"},
		{"an unknown global option", "--versoin run", "", "unknown option --versoin for svc", "did you mean: --version"},
		{"an option without value", "run list --store", "", "option --store needs a value", ""},
		{"a global option without value", "-c", "", "option -c needs a value", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := argv.Arrange(testApp(), append([]string{"svc"}, strings.Fields(tc.line)...))
			if tc.sentence == "" {
				if err != nil || strings.Join(got, " ") != tc.want {
					t.Fatalf("got %q, %v; want %q", strings.Join(got, " "), err, tc.want)
				}
				return
			}
			var f *argv.Fault
			if !errors.As(err, &f) || f.Sentence != tc.sentence || f.Hint != tc.hint || !strings.HasPrefix(f.Error(), tc.sentence) {
				t.Fatalf("got %+v; want errors.As(err, &f) && f.Sentence == tc.sentence && f.Hint == tc.hint && strings.HasPrefix(f.Error(), tc.sentence)", f)
			}
		})
	}
	if got, err := argv.Arrange(testApp(), nil); err != nil || len(got) != 0 {
		t.Error(got, err, "want len(got) == 0")
	}
}

func FuzzArrange(f *testing.F) {
	f.Add("run list --store x y")
	f.Add("-c json -- run")
	f.Add("run create - --n 3 -- -y")
	a := testApp()
	f.Fuzz(func(t *testing.T, line string) {
		words := append([]string{"svc"}, strings.Fields(line)...)
		got, err := argv.Arrange(a, words)
		var fault *argv.Fault
		if err != nil && (!errors.As(err, &fault) || fault.Sentence == "") {
			t.Fatalf("a wrong line must be a fault that says something: %v", err)
		}
		// Property: nothing is added but one "--"; nothing is lost but a "--", or all the words beside a request for
		// help.
		help := len(got) > 0 && got[len(got)-1] == "--help"
		if err == nil && (len(got) > len(words)+1 || !help && len(got) < len(words)-1) {
			t.Fatalf("%q became %q; want (an error || !len(got) > len(words)+1 || !help && len(got) < len(words)-1)", words, got)
		}
	})
}

func TestMissingOption(t *testing.T) {
	t.Parallel()
	app := &cli.App{Name: "app", Commands: []*cli.Command{{Name: "send", Flags: []cli.Flag{
		&cli.StringFlag{Name: "to", Aliases: []string{"t"}, Required: true}, &cli.StringFlag{Name: "from"}}}}}
	const missing = "missing option --to; see: app send --help"
	for line, want := range map[string]string{
		"app send":                    missing,
		"app send letter":             missing,
		"app send --from a":           missing,
		"app send -- --to":            missing,
		"app send letter --to b":      "",
		"app send -t=b":               "",
		"app send --help":             "",
		"app send letter --from":      "option --from needs a value",
		"app send letter --to":        "option --to needs a value",
		"app send letter -t b --from": "option --from needs a value",
	} {
		got := ""
		if _, err := argv.Arrange(app, strings.Fields(line)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
