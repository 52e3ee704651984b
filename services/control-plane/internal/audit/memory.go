package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// The states of the memory.
const (
	memoryNone = "none" // a ledger without a signing key remembers nothing
	memoryKept = "kept"
	memoryLost = "lost" // the file beside the signing key is gone or cannot be written
)

// memoryFile is the file's name, in the folder of the signing key.
const memoryFile = "audit_high_water"

// memoryBook is the copy of the remembered state that the owner of the database cannot reach. A nil pointer is that of
// a ledger without a key.
type memoryBook struct {
	path string
	loss string     // the failure that represents the loss of the file, while this process runs
	mu   sync.Mutex // guards told
	told bool       // the failure was already logged
}

func newMemoryBook(stateFile string) *memoryBook {
	return &memoryBook{path: filepath.Join(filepath.Dir(stateFile), memoryFile), loss: uuid.NewString()}
}

// recollection is this process's current memory of a chain.
type recollection struct {
	chain.Memory
	state string
	why   string // the fault of the memory itself
}

// recall merges the file and the table. It runs before the chain is read, so everything it reports is already in the
// chain.
func (l *Ledger) recall(ctx context.Context, q *store.Queries, keys chain.Keys, tenant string) (recollection, error) {
	r := recollection{Memory: chain.Memory{Tenant: tenant}, state: memoryNone}
	if l.memory == nil {
		sealed, err := l.sealedWithoutKey(ctx, q)
		if sealed {
			r.state, r.why = memoryLost, "this process has no signing key, and so not the file beside it that keeps the largest head"
		}
		return r, err
	}
	noted, altered, err := l.recallTable(ctx, q, keys, tenant)
	if err != nil {
		return r, err
	}
	r.Memory, r.state = r.Merge(noted), memoryKept
	if altered {
		r.why = "the database's copy of the memory of the chain was altered"
	}
	filed, err := chain.ReadMemories(l.memory.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.renewMemory(ctx, q, keys, r.Memory); err == nil {
			return r, nil
		}
	}
	if err != nil {
		r.state, r.why = memoryLost, err.Error()
		l.memory.mu.Lock()
		defer l.memory.mu.Unlock()
		if !l.memory.told {
			l.Log.ErrorContext(ctx, "the file that remembers the end of the audit ledger is lost: nothing verifies until two people acknowledge it", slog.Any("err", err))
		}
		l.memory.told = true
		return r, nil
	}
	if m, ok := filed[tenant]; ok {
		if !keys.Remembers(m) && l.lossAcknowledged(r.Memory) {
			return r, l.writeMemory(keys, r.Memory)
		}
		if !keys.Remembers(m) {
			r.state, r.why = memoryLost, "the file beside the signing key is not signed by a trusted key"
			return r, nil
		}
		r.Memory = r.Merge(m.Memory)
	}
	return r, nil
}

// recallTable reads the remembered state from the table; altered reports that its signature is wrong, so that it is
// ignored.
func (l *Ledger) recallTable(ctx context.Context, q *store.Queries, keys chain.Keys, tenant string) (m chain.Memory, altered bool, err error) {
	raw, err := q.AuditMemory(ctx, tenant)
	if store.None(err) {
		return chain.Memory{Tenant: tenant}, false, nil
	}
	if err != nil {
		return m, false, err
	}
	var signed chain.SignedMemory
	if json.Unmarshal([]byte(raw), &signed) != nil || signed.Tenant != tenant || !keys.Remembers(signed) {
		return chain.Memory{Tenant: tenant}, true, nil
	}
	return signed.Memory, false, nil
}

// errMemoryLost is the reason why the file is not recreated.
var errMemoryLost = errors.New("it is gone: the disk was lost, or the file was removed")

// renewMemory creates the file of a new ledger, of one from a version without the file, or of one whose loss two people
// have acknowledged. Any other absence is a loss.
func (l *Ledger) renewMemory(ctx context.Context, q *store.Queries, keys chain.Keys, m chain.Memory) error {
	begun := l.epochs.has(keys, chain.MemoryTenant)
	if !begun {
		rows, err := q.ListAuditEpochs(ctx, []string{chain.MemoryTenant})
		if err != nil {
			return err
		}
		begun = len(rows) > 0
	}
	if !begun {
		tenants, err := q.AuditTenants(ctx)
		if err != nil {
			return err
		}
		if _, err := os.Stat(l.epochs.path); err != nil && len(tenants) > 0 {
			begun = true // neither new nor from a version without the file
		}
	}
	if begun && !l.lossAcknowledged(m) {
		return errMemoryLost
	}
	if err := l.copyMemories(ctx, q, keys, begun); err != nil {
		return err
	}
	e := chain.SignEpoch(l.key, chain.MemoryTenant, 1, l.Now())
	l.noteEpoch(ctx, e)
	return l.putEpoch(ctx, q, e)
}

// lossAcknowledged reports whether two people have acknowledged that this process found no valid file.
func (l *Ledger) lossAcknowledged(m chain.Memory) bool {
	return slices.ContainsFunc(m.Acknowledgements, func(a chain.Acknowledgement) bool { return slices.Contains(a.Failures, l.memory.loss) })
}

// copyMemories fills a new file with the table's memory of each chain. After a loss, each tenant that has not
// acknowledged it keeps it as a failure: one tenant's people do not accept it for another's.
func (l *Ledger) copyMemories(ctx context.Context, q *store.Queries, keys chain.Keys, lost bool) error {
	if err := chain.WriteMemory(l.memory.path, "", true, nil); err != nil {
		return err
	}
	tenants, err := q.AuditTenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		m, _, err := l.recallTable(ctx, q, keys, tenant)
		if err != nil {
			return err
		}
		if lost && !l.lossAcknowledged(m) {
			m.Failures = append(m.Failures, chain.Failure{
				ID: l.memory.loss, Seq: max(m.High.Seq, 1), Reason: chain.BadMemory, Detail: "what this process remembers of the chain was lost: " + errMemoryLost.Error(), FoundAt: chain.Time(l.Now()),
			})
		}
		if err := l.writeMemory(keys, m); err != nil {
			return err
		}
	}
	return nil
}

// writeMemory adds a memory of a chain to the file.
func (l *Ledger) writeMemory(keys chain.Keys, m chain.Memory) error {
	return chain.WriteMemory(l.memory.path, m.Tenant, false, func(have chain.SignedMemory) (chain.SignedMemory, error) {
		if keys.Remembers(have) {
			m = m.Merge(have.Memory)
		}
		return chain.SignMemory(l.key, m)
	})
}

// noteMemory adds a memory of a chain to the table; the caller holds its lock.
func (l *Ledger) noteMemory(ctx context.Context, tx store.Tx, keys chain.Keys, m chain.Memory) error {
	have, _, err := l.recallTable(ctx, tx.Queries, keys, m.Tenant)
	if err != nil {
		return err
	}
	signed, err := chain.SignMemory(l.key, m.Merge(have))
	if err != nil {
		return err
	}
	raw, err := json.Marshal(signed)
	if err != nil {
		return err
	}
	return tx.PutAuditMemory(ctx, store.PutAuditMemoryParams{Tenant: m.Tenant, Document: string(raw), Now: l.Now()})
}

// memorize stores the result of a verification, in the file first, and adds the open failures to the verdict. A head is
// not reported as verified before it is remembered.
func (l *Ledger) memorize(ctx context.Context, keys chain.Keys, v *Verdict, r recollection, raises bool) error {
	known := r.Memory
	if v.Fault == nil && r.state == memoryKept && r.why != "" {
		v.Fault = &chain.Fault{Seq: max(v.HeadSeq, 1), Reason: chain.BadMemory, Detail: r.why}
	}
	if v.Fault != nil {
		f := chain.Failure{ID: uuid.NewString(), Seq: v.Fault.Seq, Reason: v.Fault.Reason, Detail: v.Fault.Detail, FoundAt: chain.Time(v.At)}
		known, _ = known.WithFailure(f)
	} else if raises && v.HeadSeq > known.High.Seq {
		known.High = chain.Head{Seq: v.HeadSeq, Hash: v.Head}
	}
	if err := l.keepMemory(ctx, keys, known, &r); err != nil {
		return err
	}
	if r.state == memoryLost && l.memory != nil {
		known.Failures = append(slices.Clone(known.Failures), chain.Failure{
			ID: l.memory.loss, Seq: max(v.HeadSeq, 1), Reason: chain.BadMemory, Detail: "what this process remembers of the chain is lost: " + r.why, FoundAt: chain.Time(v.At),
		})
	} else if r.state == memoryLost && v.Fault == nil {
		v.Fault = &chain.Fault{Seq: max(v.HeadSeq, 1), Reason: chain.BadMemory, Detail: r.why}
	}
	v.State, v.Memory = r.state, known
	if open := known.Open(); v.Fault == nil && len(open) > 0 {
		v.Fault = open[0].Fault()
	}
	return nil
}

// keepMemory writes both copies if there is anything new. A process that has lost the file, or the key that signed it,
// adds nothing: its findings concern itself rather than the chain, and no verification succeeds anyway.
func (l *Ledger) keepMemory(ctx context.Context, keys chain.Keys, known chain.Memory, r *recollection) error {
	if r.state != memoryKept {
		return nil
	}
	same := known.High == r.High && len(known.Failures) == len(r.Failures) && r.why == ""
	if same && l.filed(keys, known) {
		return nil
	}
	return l.Store.InTx(ctx, func(tx store.Tx) error {
		if err := lockMemory(ctx, tx, known.Tenant); err != nil {
			return err
		}
		if have, _, err := l.recallTable(ctx, tx.Queries, keys, known.Tenant); err != nil {
			return err
		} else if len(known.Failures) > len(r.Failures) && len(have.Merge(r.Memory).Acknowledgements) > len(r.Acknowledgements) {
			return errAcknowledged
		}
		if err := l.writeMemory(keys, known); err != nil {
			r.state, r.why = memoryLost, err.Error()
		}
		return l.noteMemory(ctx, tx, keys, known)
	})
}

// errAcknowledged reports that two people accepted the chain while it was verified: the failure found may be the one
// they accepted.
var errAcknowledged = errors.New("the chain was acknowledged while it was verified")

// lockMemory serialises failures and acknowledgements of one chain, so that each sees the other.
func lockMemory(ctx context.Context, tx store.Tx, tenant string) error {
	return tx.LockKeys(ctx, []string{"audit memory:" + tenant})
}

// filed reports whether the file already has all of it.
func (l *Ledger) filed(keys chain.Keys, m chain.Memory) bool {
	all, err := chain.ReadMemories(l.memory.path)
	have := all[m.Tenant]
	return err == nil && have.High == m.High && len(have.Failures) == len(m.Failures) && len(have.Acknowledgements) == len(m.Acknowledgements) && (m.High.Seq == 0 || keys.Remembers(have))
}

// openFailures reports whether a chain has unacknowledged failures: nothing is signed then.
func (l *Ledger) openFailures(ctx context.Context, q *store.Queries, keys chain.Keys, tenant string) (recollection, bool, error) {
	r, err := l.recall(ctx, q, keys, tenant)
	return r, r.state == memoryLost || len(r.Open()) > 0, err
}

// noteEnds verifies entries appended since its last run, so that few of them can be cut off unnoticed.
func (l *Ledger) noteEnds(ctx context.Context) {
	if l.key == nil {
		return
	}
	tenants, err := l.Store.AuditTenants(ctx)
	for _, t := range tenants {
		keys, one := l.keys(ctx)
		if one == nil {
			var r recollection
			if r, one = l.recall(ctx, l.Store.Queries, keys, t); one == nil {
				_, one = l.Verify(ctx, t, max(r.High.Seq, 1), 0)
			}
		}
		if err = errors.Join(err, one); one != nil {
			break
		}
	}
	if err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "the end of the audit ledger is not stored", slog.Any("err", err))
	}
}
