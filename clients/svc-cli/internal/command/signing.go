package command

import (
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/evidence/store"
)

const signingEnv = "SVC_STORE_SIGNING_KEY_FILE"

// SigningFlag names the key with which a command that writes to a store signs the log's checkpoints.
func SigningFlag() cli.Flag {
	return &cli.StringFlag{Name: "signing-key", Usage: "sign the log's checkpoint with the key in `FILE` (default $" + signingEnv + ")"}
}

// WriterOptions are those of a store that a command writes to: the clock, and the key that [SigningFlag] or the
// environment names, if one does.
func (e *Env) WriterOptions(c *cli.Context) (store.WriterOptions, error) {
	o := store.WriterOptions{Now: e.Now}
	key := c.String("signing-key")
	if key == "" {
		key = e.Getenv(signingEnv)
	}
	if key == "" {
		return o, nil
	}
	signer, err := store.LoadSigner(key)
	if err != nil {
		return o, Failf("signing_key_error", "%w", err)
	}
	o.Signer = signer
	return o, nil
}
