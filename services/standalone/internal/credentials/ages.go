package credentials

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// timesFile records when each secret was made. It is apart from the secrets, since each start rewrites those of the
// stand-ins, and an earlier version rejects members that it does not know.
const timesFile = "credentials.times.json"

// Made returns when each secret was made, by its name in the file of secrets. A secret of a version that kept no times
// is absent.
func Made(dir string) (map[string]time.Time, error) {
	made := map[string]time.Time{}
	b, err := os.ReadFile(filepath.Join(dir, timesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return made, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &made)
	}
	if err != nil {
		return nil, fmt.Errorf("read the times of the platform's secrets: %w", err)
	}
	return made, nil
}

// recordMade records now as the time of every secret that differs between the two.
func recordMade(dir string, before, after Credentials, now time.Time) error {
	made, err := Made(dir)
	if err != nil {
		made = map[string]time.Time{} // damaged: what it held is lost, and no start fails for it
	}
	old, secrets := before.byName(), after.byName()
	for name, secret := range secrets {
		if subtle.ConstantTimeCompare([]byte(secret), []byte(old[name])) == 0 {
			made[name] = now.UTC().Truncate(time.Second)
		}
	}
	b, err := json.MarshalIndent(made, "", "  ")
	if err == nil {
		err = renameio.WriteFile(filepath.Join(dir, timesFile), append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the times of the platform's secrets: %w", err)
	}
	return nil
}

// byName returns the secrets by their names in the file.
func (c Credentials) byName() map[string]string {
	text, err := json.Marshal(c)
	secrets := map[string]string{}
	if err == nil {
		err = json.Unmarshal(text, &secrets)
	}
	if err != nil {
		panic(err) // strings alone
	}
	return secrets
}
