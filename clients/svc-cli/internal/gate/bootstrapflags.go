package gate

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

const (
	bootstrapFlag  = "bootstrap"
	replicatesFlag = "bootstrap-replicates"
	seedFlag       = "bootstrap-seed"
	levelFlag      = "bootstrap-confidence-level"
)

// BootstrapFlags are the options of reports that may have intervals.
func BootstrapFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: bootstrapFlag, Usage: "add percentile intervals from resampled candidates"},
		&cli.IntFlag{Name: replicatesFlag, Usage: fmt.Sprintf("resample `N` times, %d to %d", gatestat.MinReplicates, gatestat.MaxReplicates), Value: 2000},
		&cli.StringFlag{Name: seedFlag, Usage: "start the generator from the integer `SEED`", Value: "0"},
		&cli.Float64Flag{Name: levelFlag, Usage: "make intervals of `LEVEL`, between 0 and 1", Value: 0.95},
	}
}

// A seed is limited far below the limit of a reader of the report. The pattern leaves the limit to its caller: with a
// repeat count it takes milliseconds to compile, at the start of every command.
const maxSeedDigits = 1000

var integer = regexp.MustCompile(`^[+-]?[0-9]+\z`)

// ReadBootstrap reads the flags; it returns nil without --bootstrap, which the others require.
func ReadBootstrap(c *cli.Context) (*gatestat.Bootstrap, error) {
	if !c.Bool(bootstrapFlag) {
		for _, name := range []string{replicatesFlag, seedFlag, levelFlag} {
			if c.IsSet(name) {
				return nil, command.Usagef("--%s has no effect without --%s; add it or leave both out", name, bootstrapFlag)
			}
		}
		return nil, nil
	}
	text := c.String(seedFlag)
	if !integer.MatchString(text) || len(strings.TrimLeft(text, "+-")) > maxSeedDigits {
		return nil, command.Usagef("--%s is an integer of up to 1000 digits", seedFlag)
	}
	seed, _ := new(big.Int).SetString(text, 10)
	b := &gatestat.Bootstrap{Replicates: c.Int(replicatesFlag), Seed: seed, ConfidenceLevel: c.Float64(levelFlag)}
	return b, b.Check()
}

// ShowProgress shows how far a bootstrap is, on a terminal only.
func ShowProgress(e *command.Env) gatestat.Progress {
	if !e.ErrorTerminal {
		return nil
	}
	last := -1
	return func(done, total int) {
		percent := 100 * done / total
		switch {
		case done == total:
			e.ShowProgress("") // the line goes, so that only the result stays
		case percent != last:
			e.ShowProgress(fmt.Sprintf("bootstrap: %d %%", percent))
		}
		last = percent
	}
}
