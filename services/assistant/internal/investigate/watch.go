package investigate

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// watch shows a list and, for a limited time, the rows that change.
func (w *work) watch(ctx context.Context, op operation.Operation) error {
	first, ok := w.showResult(ctx, op, "The line gives:")
	if !ok {
		return ctx.Err()
	}
	before, part := watchedRows(first), first.WholeTruncated
	var changes []string
	until := time.Now().Add(w.cfg.WatchLimit)
	for time.Now().Before(until) {
		if !pause(ctx, watchEvery) {
			return ctx.Err()
		}
		out, err := w.tools.Call(ctx, operation.Normalize(op))
		if err != nil {
			break
		}
		now := watchedRows(out)
		for _, key := range sortedKeys(now) {
			if before[key].lasting != now[key].lasting {
				changes = append(changes, now[key].shown)
			}
		}
		part = part || out.WholeTruncated
		if part { // a missing row may be in the rest
			for key, row := range before {
				if _, there := now[key]; !there {
					now[key] = row
				}
			}
		}
		for _, key := range sortedKeys(before) {
			if _, there := now[key]; !there {
				changes = append(changes, before[key].lasting+"  (gone)")
			}
		}
		before = now
	}
	if part {
		w.say("The list is too long to read completely, so deleted rows are not shown.")
	}
	if len(changes) == 0 {
		w.say(fmt.Sprintf("Nothing changed in the %s watched. Watching has ended; ask again to continue.", w.cfg.WatchLimit))
		return nil
	}
	w.say(fmt.Sprintf("Changes in the %s watched:\n\n%s\nWatching has ended; ask again to continue.", w.cfg.WatchLimit, indentLines(changes[:min(len(changes), mostLines)])))
	return nil
}

// pause waits, and returns false if the turn ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// watchedRow is a table row as shown, and the part of it that does not change with time alone.
type watchedRow struct{ shown, lasting string }

var (
	gapExpr = regexp.MustCompile(` {2,}`)
	// sinceExpr matches the time since the last restart, after the restart count.
	sinceExpr = regexp.MustCompile(` \(\S+ ago\)`)
)

// moving are columns that change as time passes.
var moving = map[string]bool{"AGE": true, "LAST SEEN": true, "LAST SCHEDULE": true, "DURATION": true}

// watchedRows returns the rows of a list by kind, namespace and name; rows without a name are their own key.
func watchedRows(out turn.Output) map[string]watchedRow {
	text := out.Whole
	if text == "" {
		text = out.Text
	}
	rows := map[string]watchedRow{}
	kind, columns := "", []column(nil)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "["):
			columns = nil
		case strings.HasSuffix(line, ":") && !strings.Contains(line, " "):
			kind, columns = line, nil
		case columns == nil && strings.ToUpper(line) != line: // plain names have no headings
			rows[kind+line] = watchedRow{line, line}
		case columns == nil:
			columns = readColumns(line)
		default:
			key, lasting := readWatchedRow([]rune(line), columns)
			rows[kind+key] = watchedRow{line, lasting}
		}
	}
	return rows
}

// column is a heading and the position of its cells.
type column struct {
	name string
	from int
}

// readColumns reads the headings of a table.
func readColumns(line string) []column {
	var columns []column
	from := 0
	for _, gap := range append(gapExpr.FindAllStringIndex(line, -1), []int{len(line), len(line)}) {
		columns = append(columns, column{line[from:gap[0]], len([]rune(line[:from]))})
		from = gap[1]
	}
	return columns
}

func readWatchedRow(line []rune, columns []column) (key, lasting string) {
	var kept []string
	for i, c := range columns {
		to := len(line)
		if i+1 < len(columns) {
			to = min(to, columns[i+1].from)
		}
		cell := strings.TrimSpace(string(line[min(c.from, to):to]))
		if c.name == "NAMESPACE" {
			key += cell + "/"
		}
		if c.name == "NAME" {
			key += cell
		}
		if !moving[c.name] {
			kept = append(kept, sinceExpr.ReplaceAllString(cell, ""))
		}
	}
	lasting = strings.Join(kept, "  ")
	if !slices.ContainsFunc(columns, func(c column) bool { return c.name == "NAME" }) {
		key = lasting
	}
	return key, lasting
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
