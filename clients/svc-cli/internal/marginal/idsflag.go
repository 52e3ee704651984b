package marginal

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// idsFlag accepts ids one by one or in a row. The multi-value flag of urfave/cli splits values at commas, which an id
// may contain.
type idsFlag struct{ cli.GenericFlag }

// Several makes package argv take a row of values.
func (*idsFlag) Several() bool { return true }

func newIDsFlag(name, usage string) *idsFlag {
	return &idsFlag{cli.GenericFlag{Name: name, Usage: usage, Value: &ids{}}}
}

// ids is the value of an idsFlag.
type ids []string

func (i *ids) Set(s string) error {
	*i = append(*i, s)
	return nil
}

func (i *ids) String() string { return strings.Join(*i, " ") }

func idsOf(c *cli.Context, name string) []string {
	v, _ := c.Generic(name).(*ids)
	if v == nil {
		return nil
	}
	return *v
}
