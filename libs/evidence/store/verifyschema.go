package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

func (v *verifier) sqlite(t tx) error {
	return t.each("PRAGMA integrity_check(100)", nil, func(rows *sql.Rows) error {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			v.find(FindingSQLite, "store", "%s", line)
		}
		return nil
	})
}

func (v *verifier) foreignKeys(t tx) error {
	err := t.each("PRAGMA foreign_key_check", nil, func(rows *sql.Rows) error {
		var table, parent string
		var row, key sql.NullInt64
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return err
		}
		v.findIn(parent, FindingForeignKey, fmt.Sprintf("%s row %d", table, row.Int64), "It refers to a row that %s does not have.", parent)
		return nil
	})
	if primaryCode(err) == sqlite3.SQLITE_ERROR { // of tables that were recreated
		v.find(FindingForeignKey, "store", "%v", err)
		return nil
	}
	return err
}

// object is an entry of sqlite_schema.
type object struct{ kind, name string }

// shape is the schema of a store of this build.
type shape struct {
	texts   map[object]string   // white space apart
	tables  map[object]string   // the table to which the object belongs
	columns map[string][]string // by table
	types   map[string][]string // of the columns
}

// reference is the schema that the migrations give a new store. Its constraints keep
// rows unique and events unchanged, so it is compared as a whole.
var reference = sync.OnceValues(func() (s shape, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return s, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // another connection would be another database
	err = inTx(context.Background(), db, "BEGIN", func(t tx) error {
		for _, step := range steps {
			text, err := migrations.ReadFile(step.file)
			if err != nil {
				return err
			}
			if _, err := t.exec(string(text)); err != nil {
				return err
			}
		}
		s, err = t.shape()
		return err
	})
	return s, err
})

func (t tx) shape() (shape, error) {
	s := shape{texts: map[object]string{}, tables: map[object]string{}, columns: map[string][]string{}, types: map[string][]string{}}
	err := t.each("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema", nil, func(rows *sql.Rows) error {
		var o object
		var table, text string
		err := rows.Scan(&o.kind, &o.name, &table, &text)
		s.texts[o] = strings.Join(strings.Fields(text), " ")
		s.tables[o] = table
		return err
	})
	if err != nil {
		return s, err
	}
	err = t.each("SELECT t.name, c.name, lower(c.type) FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'", nil, func(rows *sql.Rows) error {
		var table, column, kind string
		err := rows.Scan(&table, &column, &kind)
		s.columns[table] = append(s.columns[table], column)
		s.types[table] = append(s.types[table], kind)
		return err
	})
	return s, err
}

// statistics are the tables that SQLite's ANALYZE leaves: they influence its query
// plans.
var statistics = []object{{"table", "sqlite_stat1"}, {"table", "sqlite_stat4"}}

// schema reports whether the tables have the columns that the other checks read.
func (v *verifier) schema(t tx) (usable bool, err error) {
	want, err := reference()
	if err != nil {
		return false, err
	}
	have, err := t.shape()
	if err != nil {
		return false, err
	}
	for _, o := range sortedObjects(have.texts) {
		if _, ok := want.texts[o]; !ok && !slices.Contains(statistics, o) {
			v.find(FindingSchema, o.name, "The store has a %s of this name that does not belong to it.", o.kind)
		}
	}
	usable = true
	for _, o := range sortedObjects(want.texts) {
		text, there := have.texts[o]
		switch {
		case o.kind == "trigger" && text != want.texts[o]:
			v.findIn(want.tables[o], FindingTrigger, want.tables[o], "The trigger %s is missing or refuses something else.", o.name)
		case !there:
			v.find(FindingSchema, o.name, "The %s is missing.", o.kind)
		case text != want.texts[o]:
			v.find(FindingSchema, o.name, "The %s is not the one that this build makes: its columns or constraints differ.", o.kind)
		}
		if o.kind != "table" {
			continue
		}
		for _, name := range want.columns[o.name] {
			if !slices.Contains(have.columns[o.name], name) {
				if there {
					v.find(FindingSchema, o.name, "The column %s is missing.", name)
				}
				usable = false
			}
		}
	}
	return usable, nil
}

func sortedObjects(m map[object]string) []object {
	return slices.SortedFunc(maps.Keys(m), func(a, b object) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// values finds values of another type than their column's. To SQLite a blob is
// never equal to a text of the same bytes: a row could be read and not be found.
func (v *verifier) values(t tx) error {
	want, err := reference()
	if err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(want.columns)) {
		var wrong []string
		for i, column := range want.columns[table] {
			if kind := want.types[table][i]; kind != "" { // of SQLite's own table
				wrong = append(wrong, fmt.Sprintf("CASE WHEN typeof(%s) NOT IN ('%s', 'null') THEN '%[1]s, ' ELSE '' END", column, kind))
			}
		}
		if wrong == nil {
			continue
		}
		err := t.each("SELECT rowid, rtrim("+strings.Join(wrong, " || ")+", ', ') AS wrong FROM "+table+" WHERE wrong <> ''", nil, func(rows *sql.Rows) error {
			var row int64
			var names string
			err := rows.Scan(&row, &names)
			v.findIn(table+" "+names, FindingValue, fmt.Sprintf("%s row %d", table, row), "Of another type than their column: %s.", names)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leftovers reports files left beside the store.
func (v *verifier) leftovers() {
	if v.file.image == nil {
		return
	}
	switch kind := v.file.image.journal; kind {
	case leftJournal:
		v.find(FindingJournalLeft, "journal", "%s", kind.notice())
	case foreignJournal:
		v.find(FindingForeignFile, "journal", "%s", kind.notice())
	}
}

// header finds a file that another program marked as its own, that other writers
// understand differently, or that continues behind its last page.
func (v *verifier) header(t tx) error {
	var application, pages, pageSize int64
	for pragma, value := range map[string]*int64{"application_id": &application, "page_count": &pages, "page_size": &pageSize} {
		if err := t.row("PRAGMA " + pragma).Scan(value); err != nil {
			return err
		}
	}
	if application != 0 {
		v.find(FindingHeader, "application_id", "It is %d: another program marked the file as its own.", application)
	}
	head := fileHeader{}
	if err := t.row(headerQuery).Scan((*[]byte)(&head)); err != nil {
		return err
	}
	if version := head.writeVersion(); version != 1 && !head.writeAhead() { // its journal mode is reported instead
		v.find(FindingHeader, "write_version", "It is %d; this build writes 1.", version)
	}
	size := v.file.info.Size()
	if v.file.image != nil {
		info, err := os.Stat(v.file.image.path)
		if err != nil {
			return err
		}
		size = info.Size()
	}
	if extra := size - pages*pageSize; extra > 0 {
		v.find(FindingHeader, "file", "%d bytes follow the last page.", extra)
	}
	return nil
}

// journal finds a store that another program put into write-ahead mode: part of it
// may lie in another file, and a copy of this one alone be older.
func (v *verifier) journal(t tx) error {
	var mode string
	if err := t.row("PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "delete" {
		v.find(FindingJournal, "journal_mode", "It is %s, not the rollback journal; the next writing command sets it back.", mode)
	}
	return nil
}

func (v *verifier) meta(t tx) error {
	id, err := t.meta(metaStoreID)
	if err != nil {
		return err
	}
	v.storeID = id
	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || parsed.String() != id {
		v.find(FindingMeta, metaStoreID, "It is no UUID of version 7.")
	}
	key, err := t.meta(metaCursorKey)
	if err != nil {
		return err
	}
	if _, err := tree.ParseHex(key); err != nil {
		v.find(FindingMeta, metaCursorKey, "It is not 64 lower-case hex digits.")
	}
	since, err := t.meta(metaEventsSince)
	if err != nil {
		return err
	}
	v.since, err = spine.ParseTime(since)
	if err != nil || !spine.IsTimestamp(since) {
		v.find(FindingMeta, metaEventsSince, "It is no UTC time.")
	} else if made, err := t.eventsSince(); err != nil {
		return err
	} else {
		v.sinceWrong = made != since
	}
	return t.each("SELECT key FROM store_meta ORDER BY key", nil, func(rows *sql.Rows) error {
		var key string
		err := rows.Scan(&key)
		if !slices.Contains(metaKeys, key) {
			v.find(FindingMeta, key, "The store has a key of this name that does not belong to it.")
		}
		return err
	})
}
