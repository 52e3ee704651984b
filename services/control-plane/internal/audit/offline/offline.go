// Package offline is the command "audit verify": it checks an exported bundle with only a public key.
package offline

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
)

// Usage is the usage text of the command.
const Usage = "usage: control-plane audit verify <bundle.ndjson> [--key <public key: file, hex or base64>]... [--json]"

// Exit codes.
const (
	ok     = 0
	faulty = 1 // the bundle does not verify
	failed = 2 // the verification could not be done
)

type options struct {
	bundle string
	keys   []string
	json   bool
}

// Run verifies the bundle named by args, the arguments after "audit"; "-" reads from in. It returns the exit code.
func Run(args []string, in io.Reader, out, errs io.Writer) int {
	opt, err := parseArguments(args, errs)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(errs, "control-plane audit: %v\n", err)
		}
		fmt.Fprintln(errs, Usage)
		return failed
	}
	r, err := verifyBundle(opt, in)
	if err != nil {
		fmt.Fprintf(errs, "control-plane audit: %v\n", err)
		return failed
	}
	if opt.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = printReport(out, r)
	}
	switch {
	case err != nil:
		fmt.Fprintf(errs, "control-plane audit: %v\n", err)
		return failed
	case !r.Verified:
		return faulty
	}
	return ok
}

// parseArguments accepts flags before and after the bundle.
func parseArguments(args []string, errs io.Writer) (options, error) {
	var o options
	if len(args) == 0 || args[0] != "verify" {
		return o, errors.New("the one thing it can do is verify")
	}
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() {}
	fs.BoolVar(&o.json, "json", false, "")
	fs.Func("key", "", func(v string) error { o.keys = append(o.keys, v); return nil })
	for rest := args[1:]; ; {
		if err := fs.Parse(rest); err != nil {
			return o, err
		}
		if fs.NArg() == 0 {
			break
		}
		if o.bundle != "" {
			return o, fmt.Errorf("one bundle at a time, not also %q", fs.Arg(0))
		}
		o.bundle, rest = fs.Arg(0), fs.Args()[1:]
	}
	if o.bundle == "" {
		return o, errors.New("no bundle is named")
	}
	return o, nil
}

func verifyBundle(o options, in io.Reader) (chain.Report, error) {
	var trusted chain.Keys
	for _, k := range o.keys {
		text := k
		if raw, err := os.ReadFile(k); err == nil {
			text = string(raw)
		} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrInvalid) && !strings.Contains(err.Error(), "file name too long") {
			return chain.Report{}, err
		}
		public, err := chain.ParsePublic(text)
		if err != nil {
			return chain.Report{}, fmt.Errorf("--key %s: %w", k, err)
		}
		if trusted == nil {
			trusted = chain.Keys{}
		}
		trusted[chain.KeyID(public)] = public
	}
	if o.bundle != "-" {
		f, err := os.Open(o.bundle)
		if err != nil {
			return chain.Report{}, err
		}
		defer f.Close()
		in = f
	}
	return chain.VerifyBundle(in, trusted)
}

// printReport explains a report.
func printReport(out io.Writer, r chain.Report) error {
	var b strings.Builder
	if !r.Verified {
		fmt.Fprintf(&b, "NOT VERIFIED: entry %d of the chain of %q: %s: %s\n", *r.FirstBadSeq, r.Tenant, r.Reason, r.Detail)
		fmt.Fprintf(&b, "%d entries before it hold.\n", r.Checked)
	} else {
		fmt.Fprintf(&b, "VERIFIED: %d entries of the chain of %q, from %d to %d, head %s\n", r.Checked, r.Tenant, r.FromSeq, r.Head.Seq, r.Head.Hash)
		switch {
		case r.SignedSeq == 0 && r.Checked > 0:
			fmt.Fprintln(&b, "No checkpoint: the entries are consistent, but unsigned.")
		case r.SignedSeq > 0:
			fmt.Fprintf(&b, "%d checkpoints, signed by %s: entries up to %d are signed, %d after it are not.\n",
				r.Checkpoints, strings.Join(r.KeyIDs, ", "), r.SignedSeq, r.Head.Seq-r.SignedSeq)
		}
	}
	for _, a := range r.Acknowledgements {
		fmt.Fprintf(&b, "ACKNOWLEDGED %s by %s, requested by %s: %q. Entries up to %d are as they were then, altered or not; the chain is checked from %d on.\n",
			a.At, a.By, a.RequestedBy, a.Reason, a.Seq, a.Seq+1)
	}
	if r.Verified && !r.Signed {
		fmt.Fprintln(&b, "The trailer is not signed: the ledger's length is not proven.")
	}
	if r.OwnKeys {
		fmt.Fprintln(&b, "The keys are the bundle's own: give --key to check that a key you trust signed it.")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
