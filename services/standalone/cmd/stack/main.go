// Command stack provides the secrets and front doors of the containers; see docs/compose.md and docs/kubernetes.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/deploy/modelrepo"
	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/standalone/internal/samples"
	"github.com/mlp-platform/platform/services/standalone/internal/stack"
)

const usage = `usage: stack [secrets DIR | evidence DIR | modelrepo DIR | env DIR | password DIR [viewer] | manifests DIR RELEASE | copy FROM TO | backup DIR | verify | restore DIR | door OPTIONS -- COMMAND | health URL | version | help]

  secrets DIR            make the secrets of a stack once, and a folder a service with those that it reads;
                         DATA_NETWORK is the network of compose.ha.yaml, 10.237.58 by default
  evidence DIR           make an empty evidence store, or migrate the one that is there
  modelrepo DIR          make a git repository of the sample models, unless one is there
  env DIR                print addresses and tokens as export lines; ports come from the variables of compose.yaml
  password DIR [viewer]  print the dashboard's password for admins, or for viewers
  manifests DIR RELEASE  print the secrets in DIR as the Kubernetes Secrets that the chart's release reads
  copy FROM TO           copy the files of a mounted Secret to a folder, for this user alone
  backup DIR             write the secrets and volumes that are mounted in DIR/secrets and DIR/volumes/NAME, of stopped
                         containers, to standard output as one file; scripts/up.sh backup mounts them
  verify                 check the digests of such a file on standard input, and print the names of its volumes
  restore DIR            fill empty folders that are mounted the same way from such a file on standard input
  door OPTIONS -- COMMAND
                         run COMMAND, a server on loopback, and let callers with the secret to it:
                         --listen=HOST:PORT --to=HOST:PORT [--token-file=FILE] [--health=PATH]
                         [--secret=NAME=FILE]...
  health URL             exit 0 if the URL answers 200, else 1
  version                print the version

Exit codes: 0 done, 1 failed, 2 wrong arguments.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(runCommand(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// runCommand runs one command and returns the exit code.
func runCommand(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	raw := stdout // of archives
	stdout, stderr = printable.NewWriter(stdout), printable.NewWriter(stderr)
	verb := "help"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	var err error
	switch {
	case (verb == "help" || verb == "--help" || verb == "-h") && len(args) == 0:
		fmt.Fprint(stdout, usage)
	case verb == "version" && len(args) == 0:
		fmt.Fprintf(stdout, "stack %s\n", service.Version)
	case verb == "health" && len(args) == 1:
		return startup.ReportHealth("stack", startup.CheckHealth(ctx, args[0]), stdout, stderr)
	case verb == "secrets" && len(args) == 1:
		err = stack.WriteSecrets(args[0], lookupVariable(environ, "DATA_NETWORK"))
	case verb == "evidence" && len(args) == 1:
		err = stack.MakeEvidence(ctx, args[0], store.WriterOptions{Now: time.Now})
	case verb == "modelrepo" && len(args) == 1:
		// A version whose definition is in no commit reaches at most Staging: plain files would not do.
		_, err = samples.Ensure(args[0], modelrepo.Files, time.Now())
	case verb == "env" && len(args) == 1:
		err = stack.PrintEnv(args[0], environ, stdout)
	case verb == "password" && (len(args) == 1 || len(args) == 2 && args[1] == "viewer"):
		err = stack.PrintPassword(args[0], len(args) == 2, stdout)
	case verb == "manifests" && len(args) == 2:
		err = stack.PrintManifests(args[0], args[1], stdout)
	case verb == "copy" && len(args) == 2:
		err = stack.CopySecrets(args[0], args[1])
	case verb == "backup" && len(args) == 1:
		err = stack.Backup(ctx, args[0], raw, stderr)
	case verb == "verify" && len(args) == 0:
		err = stack.VerifyBackup(ctx, stdin, stdout, stderr)
	case verb == "restore" && len(args) == 1:
		err = stack.RestoreBackup(ctx, stdin, args[0], stderr)
	case verb == "door":
		d, parseErr := stack.ParseDoor(args)
		if parseErr != nil {
			fmt.Fprintf(stderr, "stack: %v\n", parseErr)
			return startup.ExitUsage
		}
		err = d.Run(ctx, service.NewLogger(stderr, "info"))
	default:
		fmt.Fprintf(stderr, "stack: unknown arguments; stack help lists what there is\n")
		return startup.ExitUsage
	}
	if err != nil {
		fmt.Fprintf(stderr, "stack: %v\n", err)
		return startup.ExitFailed
	}
	return startup.ExitOK
}

// lookupVariable returns the last value of a variable, as a shell would.
func lookupVariable(environ []string, name string) (value string) {
	for _, kv := range environ {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			value = v
		}
	}
	return value
}
