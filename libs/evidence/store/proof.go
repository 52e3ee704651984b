package store

import (
	"context"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// Checkpoint is the root of the store's event log at one size.
type Checkpoint struct {
	Origin     string // svc/<store_id>
	TreeSize   int64
	Root       tree.Hash
	CreatedAt  string
	SignedNote string // "" if the checkpoint is not signed
}

// Inclusion proves that an event is a leaf of the newest checkpoint's tree.
type Inclusion struct {
	EventID  string
	Sequence int64 // the leaf's index is one less
	Leaf     tree.Hash
	TreeSize int64
	Root     tree.Hash
	Path     []tree.Hash // from the leaf upwards
}

// Proofs need the hashes of all leaves. What is kept of them is one hash for
// every tile of 256 events, 125 KiB for a million; the rest is read again.
const (
	tileHeight = 8
	tileSize   = 1 << tileHeight
)

// readBatch limits the events that one read transaction hashes: with more, a writer
// would wait for the reader.
const readBatch = 16 * tileSize

// tiles are the roots of the full tiles of one opened file.
type tiles struct {
	mu    sync.Mutex // guards what follows; held while tiles are made, so that they are made once
	mark  uint64
	roots []tree.Hash
}

// upTo returns the roots of all full tiles of a log with size events.
func (c *tiles) upTo(ctx context.Context, s *source, size int64) ([]tree.Hash, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if opening := s.opening(); opening != c.mark {
		c.mark, c.roots = opening, nil
	}
	for full := size / tileSize; int64(len(c.roots)) < full; {
		from := int64(len(c.roots)) * tileSize
		count := min(readBatch, full*tileSize-from)
		var f frontier
		var made []tree.Hash
		err := s.read(ctx, func(t tx) error {
			made, f = nil, frontier{}
			return t.leaves(from, count, func(leaf tree.Hash) {
				f.add(leaf)
				if f.size == tileSize {
					made = append(made, f.root())
					f = frontier{}
				}
			})
		})
		if err != nil {
			return nil, err
		}
		c.roots = append(c.roots, made...)
	}
	return c.roots[:size/tileSize], nil
}

// leaves calls fn for exactly count leaf hashes, the first of index from.
func (t tx) leaves(from, count int64, fn func(tree.Hash)) error {
	next := from
	err := t.eachEvent(from, count, func(e *eventRow) error {
		if next++; e.sequence != next {
			return logChanged()
		}
		fn(e.leaf())
		return nil
	})
	if err == nil && next != from+count {
		err = logChanged()
	}
	return err
}

// hashes holds the inner hashes of the tree from which a proof is made.
type hashes struct {
	tx
	tiles []tree.Hash
}

// ReadHashes implements [tlog.HashReader].
func (h *hashes) ReadHashes(indexes []int64) ([]tree.Hash, error) {
	out := make([]tree.Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		var f frontier
		var err error
		if level >= tileHeight {
			width := int64(1) << (level - tileHeight)
			for _, root := range h.tiles[n*width : (n+1)*width] {
				f.add(root)
			}
		} else {
			err = h.leaves(n<<level, 1<<level, f.add)
		}
		if err != nil {
			return nil, err
		}
		out[i] = f.root()
	}
	return out, nil
}

// Checkpoint returns the newest checkpoint and, if since is above 0, the proof
// that the log of since events is its beginning. A since beyond the log is
// invalid_tree_size.
func (r *Reader) Checkpoint(ctx context.Context, since int64) (Checkpoint, []tree.Hash, error) {
	c, err := r.newest(ctx)
	if err != nil || since == 0 {
		return c, nil, err
	}
	if since < 0 || since > c.TreeSize {
		return c, nil, newFault(InvalidTreeSize, "The log has %d events; `since` is a size from 1 to that.", c.TreeSize)
	}
	var path []tree.Hash
	err = r.prove(ctx, c, func(h *hashes) error {
		path, err = tlog.ProveTree(c.TreeSize, since, h)
		return err
	})
	return c, path, err
}

// Inclusion proves that the newest checkpoint's tree holds the event.
func (r *Reader) Inclusion(ctx context.Context, eventID string) (Inclusion, error) {
	c, err := r.newest(ctx)
	if err != nil {
		return Inclusion{}, err
	}
	sequence, ok := parseEventID(eventID)
	if !ok || sequence > c.TreeSize {
		return Inclusion{}, &Error{Code: EventNotFound, Message: "The log has no event of this id."}
	}
	p := Inclusion{EventID: eventID, Sequence: sequence, TreeSize: c.TreeSize, Root: c.Root}
	err = r.prove(ctx, c, func(h *hashes) error {
		leaf, err := h.ReadHashes([]int64{tlog.StoredHashIndex(0, sequence-1)})
		if err != nil {
			return err
		}
		p.Leaf = leaf[0]
		p.Path, err = tlog.ProveRecord(c.TreeSize, sequence-1, h)
		return err
	})
	return p, err
}

// newest reads the newest checkpoint in a separate transaction: the events below it
// never change, so no writer waits while they are hashed.
func (r *Reader) newest(ctx context.Context) (c Checkpoint, err error) {
	err = r.source.read(ctx, func(t tx) error {
		row, err := t.newestCheckpoint()
		if err != nil {
			return err
		}
		id, err := t.meta(metaStoreID)
		if err != nil {
			return err
		}
		root, err := tree.ParseHex(row.root)
		if err != nil {
			return brokenFault(err, "The newest checkpoint's root is no hash.")
		}
		c = Checkpoint{Origin: originPrefix + id, TreeSize: row.size, Root: root,
			CreatedAt: row.createdAt, SignedNote: row.note.String}
		return nil
	})
	return c, err
}

// prove calls fn with the hashes of c's tree, once they are known to make up its root.
func (r *Reader) prove(ctx context.Context, c Checkpoint, fn func(*hashes) error) error {
	roots, err := r.tiles.upTo(ctx, r.source, c.TreeSize)
	if err != nil {
		return err
	}
	return r.source.read(ctx, func(t tx) error {
		h := &hashes{t, roots}
		root, err := tlog.TreeHash(c.TreeSize, h)
		if err != nil {
			return err
		}
		if root != c.Root {
			return logChanged()
		}
		return fn(h)
	})
}
