package grpcserver

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
)

// gRPC keeps an answer in memory until the client's flow control accepts it, and does not limit that memory.
const (
	// maxUnread limits the answers that wait for one connection's client, in bytes, and maxUnreadAll those of all. One principal may
	// have maxUnreadOne of them, over however many connections. An answer that is larger than its limit waits alone.
	maxUnread    = 64 << 20
	maxUnreadOne = maxUnreadAll / 4
	maxUnreadAll = 512 << 20
)

// connection is one connection and the answers that wait for its client.
type connection struct {
	arriving catalog.Gate   // the messages that arrive over it
	net      net.Conn       // nil if it is not known
	port     *listener.Conn // as the port has it; nil as above
	calls    atomic.Int64   // requests that are being answered
	all      *atomic.Int64
	patience time.Duration // between two parts of answers that the client takes

	mu     sync.Mutex // guards all below
	unread int64
	taken  time.Time   // when the client last took a part of an answer, or the first began to wait
	watch  *time.Timer // runs while answers wait
	ended  bool
	share  *atomic.Int64 // unread bytes of the principal that sent the first call; nil without authentication
}

// belongTo counts the connection's answers as the principal's, even if others send calls over it later.
func (c *connection) belongTo(share *atomic.Int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.share == nil && c.unread == 0 {
		c.share = share
	}
}

// count is called with mu held; it adds to all that waits.
func (c *connection) count(size int64) {
	c.unread += size
	c.all.Add(size)
	if c.share != nil {
		c.share.Add(size)
	}
}

// reserve makes room for an answer, or returns why there is none.
func (c *connection) reserve(size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return nil // the answer is dropped
	case c.unread > 0 && c.unread+size > maxUnread:
		return fault.Overloaded.Errorf("%d MiB of answers wait for this connection's client to read them; at most %d may", c.unread>>20, maxUnread>>20).After(time.Second)
	}
	c.count(size)
	if c.share != nil {
		if own := c.share.Load(); own > maxUnreadOne && own > size {
			c.count(-size)
			return fault.Overloaded.Errorf("%d MiB of answers wait for you to read them; at most %d may", (own-size)>>20, maxUnreadOne>>20).After(time.Second)
		}
	}
	if total := c.all.Load(); total > maxUnreadAll && total > size {
		c.count(-size)
		return fault.Overloaded.Errorf("%d MiB of answers wait for clients to read them, as many as the service keeps; send the request again later", maxUnreadAll>>20).After(time.Second)
	}
	if c.watch == nil {
		c.taken = time.Now()
		c.watch = time.AfterFunc(c.patience, c.check)
	}
	return nil
}

// release is called when an answer has been written, or was given up.
func (c *connection) release(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.count(-size)
	c.taken = time.Now()
	if c.unread == 0 && c.watch != nil {
		c.watch.Stop()
		c.watch = nil
	}
}

// progress is called when a part of an answer has been written.
func (c *connection) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = time.Now()
}

// check closes the connection of a client that does not read.
func (c *connection) check() {
	c.mu.Lock()
	left := c.patience - time.Since(c.taken)
	waits := c.unread > 0 && !c.ended
	if waits && left > 0 {
		c.watch.Reset(left)
	}
	c.mu.Unlock()
	if waits && left <= 0 && c.net != nil {
		_ = c.net.Close()
	}
}

// end releases the waiting answers: gRPC frees nothing when a connection closes.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	c.count(-c.unread)
	if c.watch != nil {
		c.watch.Stop()
	}
}

// partSize is how much of an answer a client must take for its connection to count as read. Writes to the connection do
// not show that: a client that reads no answer still gets refusals, and replies to its pings.
const partSize = 16 << 10

// answerParts receives the parts of one answer when gRPC frees them, each as soon as it has been written.
type answerParts struct {
	conn  *connection
	size  int64
	whole *[]byte      // the parts are pieces of it, so its memory is free only after the last
	left  atomic.Int64 // parts
}

// Get implements mem.BufferPool; it is never called.
func (p *answerParts) Get(n int) *[]byte { return mem.DefaultBufferPool().Get(n) }

// Put implements mem.BufferPool.
func (p *answerParts) Put(*[]byte) {
	if p.left.Add(-1) > 0 {
		p.conn.progress()
		return
	}
	p.conn.release(p.size)
	mem.DefaultBufferPool().Put(p.whole)
}

// split cuts the answer into parts; the last has up to twice the size, since gRPC does not report when it frees a small
// one.
func (p *answerParts) split(answer []byte) (parts mem.BufferSlice) {
	whole := answer
	p.whole = &whole
	p.left.Store(int64(max(1, len(answer)/partSize)))
	for n := p.left.Load(); n > 0; n-- {
		size := partSize
		if n == 1 {
			size = len(answer)
		}
		part := answer[:size:size]
		parts, answer = append(parts, mem.NewBuffer(&part, p)), answer[size:]
	}
	return parts
}

// Marshal implements encoding.CodecV2: an answer for which room was made counts until gRPC frees its last part.
func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	owner, reserved := c.reserved.LoadAndDelete(v)
	if !ok || !reserved {
		return c.CodecV2.Marshal(v)
	}
	parts := owner.(*answerParts)
	buf := mem.DefaultBufferPool().Get(int(parts.size))
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buf)[:0], m)
	if err != nil {
		parts.conn.release(parts.size)
		mem.DefaultBufferPool().Put(buf)
		return nil, err
	}
	return parts.split(out), nil
}

// keep makes room for an answer on its connection.
func (c *codec) keep(conn *connection, answer any) error {
	m, ok := answer.(proto.Message)
	if !ok || conn == nil {
		return nil
	}
	size := int64(proto.Size(m))
	if mem.IsBelowBufferPoolingThreshold(int(size)) { // gRPC does not report when it frees these
		return nil
	}
	if err := conn.reserve(size); err != nil {
		return err
	}
	c.reserved.Store(answer, &answerParts{conn: conn, size: size})
	return nil
}
