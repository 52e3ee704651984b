package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// maxQuestion limits a question read from a pipe, in bytes; the assistant accepts no more in one message.
const maxQuestion = 512 << 10

func chatCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "chat", Usage: "ask the cluster assistant, and approve the changes that it shows", ArgsUsage: "[question...]", Flags: []cli.Flag{
		&cli.StringFlag{Name: "session", Usage: "continue this conversation (default: a new one)"},
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the namespace that the conversation is about"},
		&cli.StringFlag{Name: "cluster", Usage: "the cluster that a new conversation is about, where the assistant has several (default: its first)"},
	}, Action: func(c *cli.Context) error {
		o := chatOptions{session: c.String("session"), namespace: c.String("namespace"), cluster: c.String("cluster"), question: strings.Join(c.Args().Slice(), " ")}
		if o.question == "" && !env.InTTY {
			text, err := awaitRead(c.Context, func() ([]byte, error) { return io.ReadAll(io.LimitReader(env.In, maxQuestion+1)) })
			switch {
			case err != nil:
				return err
			case len(text) > maxQuestion:
				return fault.New("question_too_long", "the question has more than %d KiB", maxQuestion>>10)
			}
			o.question = strings.TrimSpace(string(text))
		}
		if o.question == "" && (!env.InTTY || env.Format.Structured()) {
			return fault.Usage("missing argument <question>").WithHint("for example: mlp chat why is catalog in shop without traffic")
		}
		if o.session == "" {
			o.session = "mlp-" + uuid.Must(uuid.NewV7()).String()
		}
		r, err := env.Config()
		if err != nil {
			return err
		}
		s := env.remote(r, "assistant", "assistant", "assistant_key")
		return newConversation(env, s, o).run(c.Context, o.question)
	}}
}

type chatOptions struct{ session, namespace, cluster, question string }

// conversation is one session with the assistant.
type conversation struct {
	env       *Env
	s         *remote
	session   string
	namespace string // said with the first question; the assistant remembers it
	cluster   string // empty: that of the session, or the assistant's first
	lines     *typedLines
}

func newConversation(env *Env, s *remote, o chatOptions) *conversation {
	return &conversation{env: env, s: s, session: o.session, namespace: o.namespace, cluster: o.cluster}
}

// run answers one question, or all that a person asks at a terminal.
func (c *conversation) run(ctx context.Context, question string) error {
	keys := listenForKeys()
	defer keys.stop()
	if c.env.InTTY && !c.env.Format.Structured() {
		c.lines = readTypedLines(c.env.In)
	}
	if question != "" {
		return c.answerOnce(ctx, keys, question)
	}
	c.env.Talk("Ask about the cluster; Ctrl-C ends an answer, Ctrl-D the conversation.")
	for {
		line, err := c.prompt(keys, "\n> ")
		switch {
		case err == io.EOF: //nolint:errorlint // it comes as it is from typedLines
			c.env.Talk("\ncontinue later with: mlp chat --session %s", c.session)
			return nil
		case err != nil:
			return err
		case line == "":
			continue
		}
		if _, err := c.turn(ctx, keys, line); err != nil {
			if fault.From(err).Code == "terminated" {
				return err
			}
			c.env.showFault(err)
		}
	}
}

// answerOnce answers the question of the command line and prints the document, if the format requires one.
func (c *conversation) answerOnce(ctx context.Context, keys *keys, question string) error {
	turns, err := c.turn(ctx, keys, question)
	if err != nil || !c.env.Format.Structured() {
		return err
	}
	return c.env.Printer().Print(answerGrid(c.session, question, turns))
}

// turn asks one question and, while the answer proposes a change and it is approved, has it carried out. It returns all
// answers.
func (c *conversation) turn(ctx context.Context, keys *keys, question string) ([]chatAnswer, error) {
	var all []chatAnswer
	for {
		if c.namespace != "" {
			question, c.namespace = "[context: namespace="+c.namespace+"] "+question, ""
		}
		a, err := c.ask(ctx, keys, question)
		if err != nil {
			return all, err
		}
		all = append(all, a)
		if a.Pending == nil {
			return all, nil
		}
		decision, err := c.decide(ctx, keys, a)
		if err != nil || decision == "" {
			return all, err
		}
		question = decision
	}
}

// decide asks whether to approve the change that the answer has just shown, and returns the decision to send; an empty
// one leaves it pending. Only a person, or --yes, approves: a pipe or a document decides nothing.
func (c *conversation) decide(ctx context.Context, keys *keys, a chatAnswer) (string, error) {
	p := a.Pending
	if err := c.showRestOfDiff(ctx, a); err != nil {
		return "", err
	}
	if c.env.Yes {
		return "approve " + p.ActionID, nil
	}
	later := fmt.Sprintf("not decided; until %s: mlp chat --session %s approve %s", p.ExpiresAt, c.session, p.ActionID)
	if c.lines == nil {
		c.env.Talk("%s", later)
		return "", nil
	}
	c.lines.forget(c.env.In) // input typed before the change was shown is no answer to it
	line, err := c.prompt(keys, "\nApprove this change? [y/N/later] ")
	switch {
	case err != nil && fault.From(err).Code == "terminated":
		return "", err
	case err != nil:
		c.env.Talk("\n%s", later)
		return "", nil
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		return "approve " + p.ActionID, nil
	case "", "n", "no":
		return "deny " + p.ActionID, nil
	}
	c.env.Talk("%s", later)
	return "", nil
}

// prompt reads a line of a person; Ctrl-C ends the wait for it.
func (c *conversation) prompt(keys *keys, text string) (string, error) {
	line, err := c.lines.next(keys, func() { fmt.Fprint(c.env.Err, text) })
	if err != nil && fault.From(err).Code == "interrupted" {
		return "", fault.New("interrupted", "interrupted; continue later with: mlp chat --session %s", c.session)
	}
	return strings.TrimSpace(line), err
}

// showFault prints a fault that does not end the command.
func (e *Env) showFault(err error) { e.fail(err) }
