package marginal

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// idsFlag takes ids one by one or in a row. The flag of urfave/cli for several values splits them at commas, which an
// id may hold.
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
