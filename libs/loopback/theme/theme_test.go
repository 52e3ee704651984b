package theme_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/loopback/theme"
)

// TestContrast computes the WCAG 2 contrast of every pair of colours that the style sheet lays on each other.
func TestContrast(t *testing.T) {
	t.Parallel()
	light, dark := readTokens(t)
	const text, edge = 4.5, 3.0
	pairs := []struct {
		on, under string
		least     float64
	}{
		{"text", "bg", text}, {"text", "surface", text}, {"text", "raised", text}, {"text", "accent-soft", text},
		{"text", "good-soft", text}, {"text", "warn-soft", text}, {"text", "bad-soft", text},
		{"muted", "bg", text}, {"muted", "surface", text}, {"muted", "raised", text}, {"muted", "accent-soft", text},
		{"accent", "bg", text}, {"accent", "surface", text}, {"accent", "raised", text}, {"accent", "accent-soft", text},
		{"on-accent", "accent", text},
		{"good", "surface", text}, {"good", "raised", text}, {"good", "good-soft", text},
		{"warn", "surface", text}, {"warn", "raised", text}, {"warn", "warn-soft", text},
		{"bad", "surface", text}, {"bad", "raised", text}, {"bad", "bad-soft", text},
		{"edge", "surface", edge}, {"edge", "bg", edge},
	}
	for name, colours := range map[string]map[string]string{"light": light, "dark": dark} {
		for _, p := range pairs {
			if got := contrastRatio(t, colours[p.on], colours[p.under]); got < p.least {
				t.Errorf("%s: %s on %s has contrast %.2f, want at least %.1f", name, p.on, p.under, got, p.least)
			}
		}
	}
}

// TestColoursAreTokens: a colour outside the two lists of tokens would escape the test above.
func TestColoursAreTokens(t *testing.T) {
	t.Parallel()
	_, rules, _ := strings.Cut(theme.CSS, "*, *::before")
	if got := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b`).FindAllString(rules, -1); len(got) != 1 || got[0] != "#ffffff" {
		t.Errorf("colours named in rules: %q, want only the paper's white", got)
	}
	if strings.Contains(theme.CSS, "</") || strings.Contains(theme.CSS, "url(") || strings.Contains(theme.CSS, "@import") {
		t.Error("the style sheet ends its element or loads something")
	}
}

func readTokens(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	blocks := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(theme.CSS, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of tokens, want 2", len(blocks))
	}
	read := func(block string) map[string]string {
		m := map[string]string{}
		for _, d := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(block, -1) {
			m[d[1]] = d[2]
		}
		return m
	}
	light, dark = read(blocks[0][1]), read(blocks[1][1])
	for name := range light {
		if dark[name] == "" {
			t.Errorf(`--%s has no dark value; want dark[name] != ""`, name)
		}
	}
	return light, dark
}

func contrastRatio(t *testing.T, a, b string) float64 {
	t.Helper()
	la, lb := relativeLuminance(t, a), relativeLuminance(t, b)
	return (max(la, lb) + .05) / (min(la, lb) + .05)
}

func relativeLuminance(t *testing.T, colour string) float64 {
	t.Helper()
	if len(colour) != 7 {
		t.Fatalf("colour %q is not #rrggbb; want len(colour) == 7", colour)
	}
	var sum float64
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
