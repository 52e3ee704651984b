//go:build e2e

package assistant_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/e2e/kube"
)

// TestScenarios runs the acceptance scenarios on a real control plane, with both engines, and prints a table of the
// results for each. The engines share the cluster; each has a separate assistant and door to the API server.
func TestScenarios(t *testing.T) {
	t.Parallel()
	first := newWorld(t, []kube.Node{{Name: "node-a", CPU: "8", Memory: "16Gi"}, {Name: "node-b", CPU: "8", Memory: "16Gi"}}, "ASSISTANT_ENGINE=playbooks")
	first.engine = "playbooks"
	m := openModel(t, scenarioScript())
	second := first.beside(t, m.env...)
	second.engine, second.model = "llm", m
	engines := []*world{first, second}

	var ids []string
	t.Run("all", func(t *testing.T) {
		for _, d := range diagnosisCases() {
			ids = append(ids, d.id)
			t.Run(d.id, func(t *testing.T) {
				t.Parallel()
				d.run(t, engines)
			})
		}
		for _, s := range slices.Concat(repairScenarios(), approvalScenarios()) {
			ids = append(ids, s.id)
			for _, w := range engines {
				t.Run(s.id+"/"+w.engine, func(t *testing.T) {
					t.Parallel()
					r := s.run(t, w, strings.ToLower(s.id)+"-"+w.engine)
					r.what = s.what
					if r.diagnosed = "yes"; t.Failed() {
						r.diagnosed = "no"
					}
					w.table.add(s.id, r)
				})
			}
		}
	})
	for _, d := range []diagnosis{lostNodeCase(), taintedNodesCase()} { // they change nodes, which all cases share
		ids = append(ids, d.id)
		t.Run(d.id, func(t *testing.T) { d.run(t, engines) })
	}
	slices.SortFunc(ids, func(a, b string) int {
		var i, j int
		_, _ = fmt.Sscan(a[1:], &i) // a letter and a number
		_, _ = fmt.Sscan(b[1:], &j)
		return 100*int(a[0]) + i - 100*int(b[0]) - j
	})
	for _, w := range engines {
		w.table.print(t, w.engine, ids)
	}
	if len(ids) != 40 {
		t.Errorf("%d scenarios, want 40", len(ids))
	}
	m.judge(t)
}

// dumpSchema returns all text in the assistant's schema.
func dumpSchema(t *testing.T, database string) string {
	t.Helper()
	var b strings.Builder
	for _, table := range queryColumn(t, database, "select table_name from information_schema.tables where table_schema = 'assistant' and table_type = 'BASE TABLE'") {
		for _, line := range queryColumn(t, database, "select t::text from assistant."+pgx.Identifier{string(table)}.Sanitize()+" t") {
			b.Write(line)
		}
		// Frames and documents are bytes, which Postgres prints as hex.
		for _, column := range queryColumn(t, database, "select column_name from information_schema.columns where table_schema = 'assistant' and data_type = 'bytea' and table_name = '"+string(table)+"'") {
			for _, value := range queryColumn(t, database, "select encode("+pgx.Identifier{string(column)}.Sanitize()+", 'escape') from assistant."+pgx.Identifier{string(table)}.Sanitize()) {
				b.Write(value)
			}
		}
	}
	return b.String()
}

// readOutbox returns the data of the events that the assistant has written.
func readOutbox(t *testing.T, database string) [][]byte {
	t.Helper()
	return queryColumn(t, database, "select payload::text from assistant.outbox order by seq")
}

// queryColumn returns the first column of each row as text.
func queryColumn(t *testing.T, database, sql string) [][]byte {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out [][]byte
	for rows.Next() {
		var text *string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		if text != nil {
			out = append(out, []byte(*text))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
