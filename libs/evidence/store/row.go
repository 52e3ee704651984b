package store

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Run is a stored run that passed every check of its row.
type Run struct {
	Projection          spine.Run
	Document            canon.Raw // the projection as it is stored
	IdempotencyKey      string    // as the caller gave it
	CreateRequestDigest string
	CreatedAt           string
	UpdatedAt           string
}

// ours selects the rows of runs that are runs of this product; the table is shared.
const ours = "row_kind IN ('" + spine.CreatedRow + "', '" + spine.ImportedRow + "')"

// oursOrClaimed also selects rows whose document names one of the two kinds while the
// column differs: such a row was changed, and must fail its page rather than vanish from
// it, and so must one whose key or event shows that it was a run. Rows of another kind
// that merely quote one are sorted out later.
const oursOrClaimed = "(r." + ours +
	` OR instr(r.metadata_json, '"kind":"` + spine.CreatedRow + `"') > 0` +
	` OR instr(r.metadata_json, '"kind":"` + spine.ImportedRow + `"') > 0 OR ` + claimed + ")"

// claimed selects rows that have a key or an event as only our runs have.
const claimed = "(substr(r.idempotency_key, 1, 18) = 'product-spine-cli:' OR EXISTS (SELECT 1 FROM events e WHERE e.run_id = r.run_id))"

func isOurs(kind string) bool { return kind == spine.CreatedRow || kind == spine.ImportedRow }

// runRow is a row of runs and the row of idempotency that its key leads to.
type runRow struct {
	id            string
	key           string
	requestDigest string
	state         string
	metadata      string
	createdAt     string
	updatedAt     string
	kind          string
	projectID     string
	workUnitID    string

	keyAgrees bool // the row of idempotency has the same run, request and time
	claimed   bool // of another kind, and yet with the key or an event of a run

	events        int64          // how many the log has of the run; 3 means 3 or more
	first, second runEvent       // null if there is none
	elsewhere     bool           // one of the two is of another project or work unit
	eventsSince   sql.NullString // null if the first event is a run.created: then it is not needed
}

// runEvent holds the columns of an event that a run's row is compared with.
type runEvent struct {
	kind, occurredAt sql.NullString
	payload          sql.NullString // of the first alone
}

// runSelect reads a run's row together with the values that it is compared with. Each
// column of a result costs the driver several allocations, so values that only have to
// be equal are compared here, to the byte, and those that most runs lack are looked up
// for the others alone. The column's name is copied, too: that of an expression without
// one is its whole text.
const runSelect = `SELECT r.run_id, r.idempotency_key, r.request_digest, r.state, r.metadata_json, r.created_at, r.updated_at,
	r.row_kind, r.project_id, r.work_unit_id,
	coalesce(i.request_digest = r.request_digest COLLATE BINARY AND i.run_id = r.run_id COLLATE BINARY
		AND i.created_at = r.created_at COLLATE BINARY, 0) AS k,
	CASE WHEN r.` + ours + ` THEN 0 ELSE ` + claimed + ` END AS c,
	CASE WHEN f.sequence IS NULL THEN 0 WHEN s.sequence IS NULL THEN 1
		ELSE 2 + EXISTS (SELECT 1 FROM events e WHERE e.run_id = r.run_id AND e.sequence > s.sequence) END AS n,
	f.event_type, f.occurred_at, f.payload_json, s.event_type, s.occurred_at,
	f.sequence IS NOT NULL AND (f.project_id IS NOT r.project_id COLLATE BINARY OR f.work_unit_id IS NOT r.work_unit_id COLLATE BINARY)
		OR s.sequence IS NOT NULL AND (s.project_id IS NOT r.project_id COLLATE BINARY OR s.work_unit_id IS NOT r.work_unit_id COLLATE BINARY) AS e,
	CASE f.event_type WHEN '` + spine.RunCreated + `' THEN NULL
		ELSE (SELECT value FROM store_meta WHERE key = '` + metaEventsSince + `') END AS t
	FROM runs r LEFT JOIN idempotency i ON i.idempotency_key = r.idempotency_key
	LEFT JOIN events f ON f.sequence = (SELECT min(e.sequence) FROM events e WHERE e.run_id = r.run_id)
	LEFT JOIN events s ON s.sequence = (SELECT min(e.sequence) FROM events e WHERE e.run_id = r.run_id AND e.sequence > f.sequence)`

func (r *runRow) scan(from scanner) error {
	return from.Scan(&r.id, &r.key, &r.requestDigest, &r.state, &r.metadata, &r.createdAt, &r.updatedAt,
		&r.kind, &r.projectID, &r.workUnitID, &r.keyAgrees, &r.claimed, &r.events,
		&r.first.kind, &r.first.occurredAt, &r.first.payload, &r.second.kind, &r.second.occurredAt,
		&r.elsewhere, &r.eventsSince)
}

// record is a run's metadata_json.
type record struct {
	object              *canon.Object
	kind                string
	createRequestDigest string
	projectionDigest    string // product_spine_request_digest
	projection          spine.Run
	document            canon.Raw     // the projection in form C1
	imported            *importedPart // nil on rows of `run create`
}

// importedPart holds the further fields of a row with a retained report.
type importedPart struct {
	initialState    spine.State
	sourceRunRecord canon.Value // nil if none was given
	report          canon.Value // nil if it was taken away
	manifests       canon.Value
	verifications   canon.Value
}

var recordCodes = closed.Codes{Missing: "missing_field", Unknown: "unknown_field", Root: "invalid_shape",
	Shape: "invalid_shape", Type: "invalid_type", Value: "invalid_value"}

var (
	createdKeys  = []string{"schema_version", "kind", "create_request_digest", "product_spine_request_digest", "projection"}
	importedKeys = append(append([]string{}, createdKeys...),
		"initial_state", "source_run_record", "evidence_report", "result_manifest_digests", "verification_result_digests")
)

// kindOf returns the kind in a stored document, or "".
func kindOf(metadata string) string {
	value, err := canon.Parse([]byte(metadata), canon.ObjectRoot())
	if err != nil {
		return ""
	}
	kind, _ := value.(*canon.Object).Get("kind")
	text, _ := kind.(string)
	return text
}

// foreign reports whether a row is another product's. If column and document disagree
// and one of them names a kind of ours, the row is ours and damaged; so it is if
// its key or an event is that of a run.
func (r *runRow) foreign() bool {
	if isOurs(r.kind) || r.claimed {
		return false
	}
	return !isOurs(kindOf(r.metadata))
}

func foreignRun(id string) error {
	return &Error{Code: NotProductSpineRun, ID: id, Message: fmt.Sprintf("The row %s is not a run of this product.", id)}
}

// record reads the row's document, as far as it can be read without its report.
func (r *runRow) record() (*record, error) {
	object, err := strictObject(r.metadata)
	if err != nil {
		return nil, corruptFault(r.id, "%v", err)
	}
	rec := &record{object: object}
	projection, found := object.Get("projection")
	if rec.document, err = canon.C1(projection); err != nil {
		return nil, corruptFault(r.id, "the projection is invalid (%v)", err)
	}
	if found {
		// Most of a record is its projection, which need not be written again to see
		// whether the whole is in canonical form.
		object.Set("projection", rec.document)
	}
	err = checkCanonical(object, r.metadata)
	if found {
		object.Set("projection", projection)
	}
	if err != nil {
		return nil, corruptFault(r.id, "%v", err)
	}
	kind, _ := object.Get("kind")
	rec.kind, _ = kind.(string)
	keys := createdKeys
	if rec.kind == spine.ImportedRow {
		keys = importedKeys
	}
	// Without its report the run can still be read; its evidence cannot.
	probe := object
	if _, ok := object.Get("evidence_report"); !ok && rec.kind == spine.ImportedRow {
		probe = canon.Clone(object).(*canon.Object)
		probe.Set("evidence_report", nil)
	}
	rd := closed.NewReader(recordCodes)
	o := rd.Root(probe, keys...)
	o.OneOf("schema_version", "unsupported_version", spine.SchemaVersion)
	o.OneOf("kind", "invalid_kind", spine.CreatedRow, spine.ImportedRow)
	rec.createRequestDigest = o.Match("create_request_digest", "invalid_digest", "a digest", spine.IsDigest)
	rec.projectionDigest = o.Match("product_spine_request_digest", "invalid_digest", "a digest", spine.IsDigest)
	if rec.kind == spine.ImportedRow && rd.OK() {
		rec.imported = &importedPart{
			initialState: spine.State(o.Match("initial_state", "invalid_state", "a state of a run",
				func(s string) bool { return spine.State(s).Valid() })),
			sourceRunRecord: o.Value("source_run_record"),
			report:          o.Value("evidence_report"),
			manifests:       o.Value("result_manifest_digests"),
			verifications:   o.Value("verification_result_digests"),
		}
	}
	if f := rd.Fault(); f != nil {
		return nil, corruptFault(r.id, "%s", describeFault(f))
	}
	if rec.projection, err = spine.ReadRun(projection); err != nil {
		return nil, corruptFault(r.id, "the projection is invalid (%s)", describeFault(err))
	}
	return rec, nil
}

// check compares the row with all other records of the run in the store, except its
// report.
func (r *runRow) check(rec *record) error {
	p := &rec.projection
	for _, c := range []struct {
		what         string
		stored, want string
	}{
		{"run_id", r.id, p.RunID},
		{"row_kind", r.kind, rec.kind},
		{"state", r.state, string(p.State)},
		{"project_id", r.projectID, p.ProjectID},
		{"work_unit_id", r.workUnitID, p.WorkUnit.ID},
		{"request_digest", r.requestDigest, rec.createRequestDigest},
		{"product_spine_request_digest", rec.projectionDigest, p.RequestDigest},
		{"create_request_digest", rec.createRequestDigest, rec.expectedDigest()},
	} {
		if c.stored != c.want {
			return corruptFault(r.id, "%s does not agree with the projection", c.what)
		}
	}
	prefix := spine.CreateKeyPrefix
	if rec.imported != nil {
		prefix = spine.ImportKeyPrefix
	}
	key, ok := strings.CutPrefix(r.key, prefix)
	if trimmed, err := spine.IdempotencyKey(key); !ok || err != nil || trimmed != key {
		return corruptFault(r.id, "idempotency_key is none that this kind of row has")
	}
	if !r.keyAgrees {
		return corruptFault(r.id, "the idempotency row does not agree with the run")
	}
	if !spine.IsTimestamp(r.createdAt) || !spine.IsTimestamp(r.updatedAt) {
		return corruptFault(r.id, "created_at or updated_at is no UTC time")
	}
	if rec.imported != nil {
		return rec.imported.checkShape(r.id)
	}
	return nil
}

// checkEvents compares the row with the run's events: its state, project, work unit and
// times follow from them. A run may lack its run.created if it is older than the log.
func (r *runRow) checkEvents(rec *record) error {
	first := spine.Proposed
	if rec.imported != nil {
		first = rec.imported.initialState
	}
	if r.elsewhere {
		return corruptFault(r.id, "the log has it in another project or work unit")
	}
	log, newest := r.first.kind.String, &r.first
	if r.events > 1 {
		log, newest = log+" "+r.second.kind.String, &r.second
	}
	switch {
	case r.events > 2:
		return corruptFault(r.id, "the log has more events of it than a run can have")
	case log == spine.RunCreated, log == spine.RunCreated+" "+spine.RunCancelled:
		payload := `{"request_digest":"` + r.requestDigest + `","state":"` + string(first) + `"}`
		if r.first.occurredAt.String != r.createdAt || r.first.payload.String != payload {
			return corruptFault(r.id, "it is not the run that the log has as created")
		}
	case r.events == 0 && r.isOlder():
		return nil // nothing was recorded of it
	case log == spine.RunCancelled && r.isOlder():
	default:
		return corruptFault(r.id, "the log has no %s of it, or events that cannot follow one another", spine.RunCreated)
	}
	state, changedAt := first, r.createdAt
	if newest.kind.String == spine.RunCancelled {
		state, changedAt = spine.Cancelled, newest.occurredAt.String
	}
	if rec.projection.State != state || r.updatedAt != changedAt {
		return corruptFault(r.id, "by the log it is %s since %s", state, changedAt)
	}
	return nil
}

// isOlder reports whether the run was there before the store had events.
func (r *runRow) isOlder() bool {
	at, err := spine.ParseTime(r.createdAt)
	since, sinceErr := spine.ParseTime(r.eventsSince.String)
	return err == nil && sinceErr == nil && at.Before(since)
}

// expectedDigest is the create digest of the run as it was first stored.
func (rec *record) expectedDigest() string {
	if rec.imported == nil {
		return spine.CreateDigestOf(rec.inState(spine.Proposed))
	}
	if rec.projection.EvidenceReportDigest == nil {
		return ""
	}
	return spine.ImportDigestOf(rec.inState(rec.imported.initialState), *rec.projection.EvidenceReportDigest)
}

// inState is the projection as a document, in another state.
func (rec *record) inState(state spine.State) canon.Value {
	if rec.projection.State == state {
		return rec.document
	}
	first := rec.projection
	first.State = state
	return first.Value()
}

func (p *importedPart) checkShape(id string) error {
	if p.sourceRunRecord != nil {
		if _, ok := p.sourceRunRecord.(*canon.Object); !ok {
			return corruptFault(id, "source_run_record is no object")
		}
		if err := spine.CheckStorable(p.sourceRunRecord); err != nil {
			return corruptFault(id, "source_run_record: %v", err)
		}
	}
	for _, digests := range []canon.Value{p.manifests, p.verifications} {
		o, ok := digests.(*canon.Object)
		if !ok {
			return corruptFault(id, "the digests of manifests or verifications are no object")
		}
		for attempt, v := range o.All() {
			if s, ok := v.(string); !ok || !spine.IsDigest(s) || !spine.IsIdentifier(attempt) {
				return corruptFault(id, "the digests of manifests or verifications are not digests by attempt")
			}
		}
	}
	return nil
}

// run checks the row and returns the part that callers see.
func (r *runRow) run() (Run, error) {
	if r.foreign() {
		return Run{}, foreignRun(r.id)
	}
	rec, err := r.record()
	if err == nil {
		err = r.check(rec)
	}
	if err == nil {
		err = r.checkEvents(rec)
	}
	if err != nil {
		return Run{}, err
	}
	return r.view(rec), nil
}

func (r *runRow) view(rec *record) Run {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.key, "product-spine-cli:"), ":")
	return Run{Projection: rec.projection, Document: rec.document, IdempotencyKey: key, CreateRequestDigest: rec.createRequestDigest,
		CreatedAt: r.createdAt, UpdatedAt: r.updatedAt}
}

// labelsOf reads, from an older row's document, the values that version 3 keeps in
// columns, as far as they are there.
func labelsOf(metadata string) (kind, project, unit string) {
	value, err := canon.Parse([]byte(metadata), canon.ObjectRoot())
	if err != nil {
		return "", "", ""
	}
	text := func(o *canon.Object, key string) string {
		v, _ := o.Get(key)
		s, _ := v.(string)
		return s
	}
	child := func(o *canon.Object, key string) *canon.Object {
		v, _ := o.Get(key)
		c, _ := v.(*canon.Object)
		return c
	}
	root := value.(*canon.Object)
	projection := child(root, "projection")
	return text(root, "kind"), text(projection, "project_id"), text(child(projection, "work_unit"), "id")
}
