package cli

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// bodyUntilCanceled sends nothing until its request is given up.
type bodyUntilCanceled struct{ *http.Request }

func (b bodyUntilCanceled) Read([]byte) (int, error) {
	<-b.Context().Done()
	return 0, b.Context().Err()
}

func (bodyUntilCanceled) Close() error { return nil }

// A silent assistant is given up after maxSilence, whether or not its headers came.
func TestChatGivesUpASilentAssistant(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]roundTrip{
		"before the headers": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"after the headers": func(r *http.Request) (*http.Response, error) {
			header := http.Header{"Content-Type": {"text/event-stream"}}
			return &http.Response{StatusCode: http.StatusOK, Header: header, Body: bodyUntilCanceled{r}, Request: r}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newConversation(&Env{Out: io.Discard, Err: io.Discard}, &remote{key: "assistant", url: "http://localhost", http: &http.Client{Transport: answer}}, chatOptions{session: "s"})
				start := time.Now()
				_, err := c.ask(t.Context(), &keys{make(chan os.Signal, 1)}, "what is wrong?")
				if err == nil || fault.From(err).Code != "timeout" || !strings.Contains(err.Error(), "sent nothing for 60 s") {
					t.Errorf("got %v, want the sentence of a silent assistant", err)
				}
				if got := time.Since(start); got != maxSilence {
					t.Errorf("got the end after %s, want %s", got, maxSilence)
				}
			})
		})
	}
}

// The cluster of the command line goes with every message, so that an assistant refuses one that is not the session's.
func TestChatNamesTheCluster(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{"", "west"} {
		var sent http.Header
		answer := roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			header := http.Header{"Content-Type": {"text/event-stream"}}
			return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader("data: [DONE]\n\n")), Request: r}, nil
		})
		c := newConversation(&Env{Out: io.Discard, Err: io.Discard}, &remote{key: "assistant", url: "http://localhost", http: &http.Client{Transport: answer}}, chatOptions{session: "s", cluster: cluster})
		body, err := c.open(t.Context(), "what is wrong?")
		if err != nil {
			t.Fatal(err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
		if got := sent.Get("X-Cluster"); got != cluster {
			t.Errorf("got X-Cluster %q, want %q", got, cluster)
		}
	}
}
