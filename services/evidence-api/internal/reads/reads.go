// Package reads answers from the store: lists, single documents, evidence, events and
// proofs of the event log.
package reads

import (
	"context"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/cursor"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/evidence/tree"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// lookup reads a document from the store.
type lookup func(ctx context.Context, s *store.Reader) (any, error)

// lookups are the endpoints that answer from the store with one document, by operation
// id. Each checks its values before the store is opened.
var lookups = map[string]func(id string, v query.Values) (lookup, error){
	route.Runs: func(_ string, v query.Values) (lookup, error) {
		w, err := parseWindow(v, cursor.Runs)
		if err != nil {
			return nil, err
		}
		q := store.RunQuery{Window: w, State: v.Get(route.State), ProjectID: v.Get(route.ProjectID)}
		return func(ctx context.Context, s *store.Reader) (any, error) {
			page, err := s.Runs(ctx, q)
			return listPage(page, w, func(r store.Run) canon.Raw { return r.Document }), err
		}, q.Check()
	},
	route.Run: readOne(func(ctx context.Context, s *store.Reader, id string) (any, error) {
		r, err := s.Run(ctx, id)
		return stored{Head: newHead(document.KindRun), Run: r.Document, IdempotencyKey: r.IdempotencyKey,
			CreateRequestDigest: r.CreateRequestDigest}, err
	}),
	route.RunAttempts: readOne(func(ctx context.Context, s *store.Reader, id string) (any, error) {
		r, err := s.Run(ctx, id)
		return document.NewRunAttempts(r.Projection), err
	}),
	route.RunEvidence: readOne(readEvidence),
	route.WorkUnits: func(_ string, v query.Values) (lookup, error) {
		w, err := parseWindow(v, cursor.WorkUnits)
		if err != nil {
			return nil, err
		}
		q := store.WorkUnitQuery{Window: w, ProjectID: v.Get(route.ProjectID)}
		return func(ctx context.Context, s *store.Reader) (any, error) {
			page, err := s.WorkUnits(ctx, q)
			return listPage(page, w, keepAsIs[spine.WorkUnit]), err
		}, q.Check()
	},
	route.WorkUnit: readOne(func(ctx context.Context, s *store.Reader, id string) (any, error) {
		u, err := s.WorkUnit(ctx, id)
		return document.NewWorkUnit(u), err
	}),
	route.Project: readOne(func(ctx context.Context, s *store.Reader, id string) (any, error) {
		p, err := s.Project(ctx, id)
		return document.NewProject(p), err
	}),
	route.Connections: func(_ string, v query.Values) (lookup, error) {
		w, err := parseWindow(v, cursor.Connections)
		return func(ctx context.Context, s *store.Reader) (any, error) {
			page, err := s.Connections(ctx, w)
			return listPage(page, w, keepAsIs[spine.Connection]), err
		}, err
	},
	route.Connection: readOne(func(ctx context.Context, s *store.Reader, id string) (any, error) {
		c, err := s.Connection(ctx, id)
		return document.NewConnection(c), err
	}),
	route.Events:     lookUpEvents,
	route.Checkpoint: lookUpCheckpoint,
	route.Proof: readOne(func(ctx context.Context, s *store.Reader, id string) (any, error) {
		p, err := s.Inclusion(ctx, id)
		return document.NewInclusion(document.InclusionDetail{EventID: p.EventID, Sequence: p.Sequence, LeafHash: tree.Hex(p.Leaf),
			TreeSize: p.TreeSize, RootHash: tree.Hex(p.Root), InclusionPath: hexPath(p.Path)}), err
	}),
}

// readOne returns an endpoint about one thing, without query values.
func readOne(read func(ctx context.Context, s *store.Reader, id string) (any, error)) func(string, query.Values) (lookup, error) {
	return func(id string, _ query.Values) (lookup, error) {
		return func(ctx context.Context, s *store.Reader) (any, error) { return read(ctx, s, id) }, nil
	}
}

func newHead(kind string) document.Head {
	return document.Head{APIVersion: document.APIVersion, SchemaVersion: spine.SchemaVersion, Kind: kind, OK: true}
}

// stored is [document.Run] around the projection as it is stored.
type stored struct {
	document.Head
	Run                         canon.Raw `json:"run"`
	IdempotencyKey              string    `json:"idempotency_key"`
	CreateRequestDigest         string    `json:"create_request_digest"`
	Created                     bool      `json:"created"`
	Replayed                    bool      `json:"replayed"`
	ProviderExecutionTerminated bool      `json:"provider_execution_terminated"`
	CandidateAccepted           bool      `json:"candidate_accepted"`
	MergeAuthority              bool      `json:"merge_authority"`
}

// retained is the evidence answer around the report as it is stored, unlike
// [document.RunEvidence], which would read it into a struct first.
type retained struct {
	document.Head
	RunID                string        `json:"run_id"`
	EvidenceReportDigest string        `json:"evidence_report_digest"`
	EvidenceReport       *canon.Object `json:"evidence_report"`
}

func readEvidence(ctx context.Context, s *store.Reader, id string) (any, error) {
	e, err := s.Evidence(ctx, id)
	return retained{
		Head: newHead(document.KindRunEvidence), RunID: e.RunID, EvidenceReportDigest: e.Digest, EvidenceReport: e.Report,
	}, err
}

func lookUpCheckpoint(_ string, v query.Values) (lookup, error) {
	since, asked, err := parseTreeSize(v.Get(route.Since))
	return func(ctx context.Context, s *store.Reader) (any, error) {
		c, path, err := s.Checkpoint(ctx, since)
		detail := document.CheckpointDetail{Origin: c.Origin, TreeSize: c.TreeSize, RootHash: tree.Hex(c.Root), CreatedAt: c.CreatedAt}
		if c.SignedNote != "" {
			detail.SignedNote = &c.SignedNote
		}
		var consistency *document.Consistency
		if asked {
			consistency = &document.Consistency{FromSize: since, Path: hexPath(path)}
		}
		return document.NewCheckpoint(detail, consistency), err
	}, err
}

func hexPath(path []tree.Hash) []string {
	out := []string{}
	for _, h := range path {
		out = append(out, tree.Hex(h))
	}
	return out
}

func keepAsIs[T any](x T) T { return x }

// listPage builds the list document of a page of the store.
func listPage[S, T any](page store.Page[S], w store.Window, item func(S) T) any {
	items := make([]T, len(page.Items))
	for i, s := range page.Items {
		items[i] = item(s)
	}
	return document.NewList(items, w.Limit, page.Next)
}

// parseWindow reads limit and cursor. It checks of the cursor what needs no store.
func parseWindow(v query.Values, kind cursor.Kind) (store.Window, error) {
	w := store.Window{Limit: store.DefaultLimit, Cursor: v.Get(route.Cursor)}
	if text := v.Get(route.Limit); text != nil {
		n, ok := query.ParseDigits(*text, 9)
		if !ok || n < 1 || n > store.MaxLimit {
			return w, catalogue.BadLimit()
		}
		w.Limit = int(n)
	}
	if w.Cursor != nil && cursor.Check(kind, *w.Cursor) != nil {
		return w, catalogue.New(catalogue.InvalidCursor)
	}
	return w, nil
}

// parseTreeSize reads the query value "since" of a checkpoint.
func parseTreeSize(text *string) (n int64, asked bool, err error) {
	if text == nil {
		return 0, false, nil
	}
	n, ok := query.ParseDigits(*text, 18)
	if !ok || n < 1 {
		return 0, true, catalogue.New(catalogue.InvalidTreeSize)
	}
	return n, true, nil
}
