package caller

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// Minted is the response to a request for a demo key.
type Minted struct {
	APIKey           string `json:"api_key"`
	Email            string `json:"email"`
	ExpiresAt        int64  `json:"expires_at"` // unix seconds
	ExpiresInSeconds int64  `json:"expires_in_seconds"`
}

// maxEmail is the maximum length of a deliverable address (RFC 5321 section 4.5.3.1.3, less the brackets).
const maxEmail = 254

// MayMint reports whether this caller may create a demo key at all: it is checked before the body is read, in the order
// of the API. The error is a problem: 403 or 503.
func (c *Callers) MayMint(by Caller) error {
	switch {
	case by.Role != guard.Admin:
		return fault.NotPermitted("Demo keys are made by admins.")
	case c.demo == nil:
		return fault.DemoKeysUnavailable.New("Demo keys are off: the server needs AUTH_BACKEND=hmac and DEMO_KEY_HMAC_SECRET.")
	}
	return nil
}

// Mint creates the demo key that a body requests. The error is a problem: 403, 503, 422 or 400, in this order.
func (c *Callers) Mint(by Caller, body []byte) (Minted, error) {
	if err := c.MayMint(by); err != nil {
		return Minted{}, err
	}
	email, hours, err := c.readMint(body)
	if err != nil {
		return Minted{}, err
	}
	life := int64(hours) * int64(time.Hour/time.Second)
	expiry := c.now().Unix() + life
	return Minted{APIKey: c.demo.Mint(email, expiry), Email: email, ExpiresAt: expiry, ExpiresInSeconds: life}, nil
}

func (c *Callers) readMint(body []byte) (email string, hours int, err error) {
	var in struct {
		Email    *string         `json:"email"`
		TTLHours json.RawMessage `json:"ttl_hours"`
	}
	if err := service.ParseJSON(body, &in, true); err != nil {
		return "", 0, err
	}
	var faults []problem.Field
	if in.Email == nil || !validEmail(*in.Email) {
		faults = append(faults, problem.Field{Loc: []string{"body", "email"}, Msg: "must be an address such as name@example.org"})
	}
	hours, tooLong, ok := c.readHours(in.TTLHours)
	if !ok {
		faults = append(faults, problem.Field{Loc: []string{"body", "ttl_hours"}, Msg: "must be a whole number of at least 1, or null"})
	}
	switch {
	case len(faults) > 0:
		return "", 0, fault.Invalid(faults...)
	case tooLong:
		return "", 0, fault.TTLTooLong.New(fmt.Sprintf("A demo key may live for %d hours at most.", c.maxHours))
	}
	return *in.Email, hours, nil
}

// readHours accepts JSON integers of any size: one too large for an int is too long, not malformed.
func (c *Callers) readHours(raw json.RawMessage) (hours int, tooLong, ok bool) {
	s := string(raw)
	if s == "" || s == "null" {
		return c.defaultHours, false, true
	}
	if strings.Trim(s, "0123456789") != "" || s == "0" {
		return 0, false, false
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > c.maxHours {
		return 0, true, true
	}
	return n, false, true
}

// validEmail accepts x@y.z without blanks and with one @. Whether the address is deliverable does not matter: it names
// the holder.
func validEmail(s string) bool {
	if len(s) > maxEmail || strings.Count(s, "@") != 1 {
		return false
	}
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) }) >= 0 {
		return false // a JSON parser replaces invalid bytes by RuneError
	}
	name, domain, _ := strings.Cut(s, "@")
	labels := strings.Split(domain, ".")
	for _, l := range labels {
		if l == "" {
			return false
		}
	}
	return name != "" && len(labels) > 1
}
