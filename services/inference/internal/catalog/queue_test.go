package catalog

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// queueTest notes the order in which loads start.
type queueTest struct {
	t       *testing.T
	queue   *loadQueue
	started chan string
	ended   map[string]chan struct{}
}

func newQueueTest(t *testing.T) *queueTest {
	return &queueTest{t, newLoadQueue(), make(chan string, 200), map[string]chan struct{}{}}
}

// add queues a load that runs until end is called with its name.
func (q *queueTest) add(name, model string, r rank) {
	ended := make(chan struct{})
	q.ended[name] = ended
	go func() {
		leave, err := q.queue.enter(q.t.Context(), model, r)
		if err != nil {
			q.t.Errorf("%s: %v", name, err)
			return
		}
		q.started <- name
		<-ended
		leave()
	}()
	synctest.Wait()
}

func (q *queueTest) end(name string) {
	close(q.ended[name])
	synctest.Wait()
}

// starts are the loads that have started since the last call, sorted: those of one moment have no order.
func (q *queueTest) starts() (out []string) {
	for len(q.started) > 0 {
		out = append(out, <-q.started)
	}
	slices.Sort(out)
	return out
}

func (q *queueTest) want(names ...string) {
	q.t.Helper()
	if got := q.starts(); !slices.Equal(got, names) {
		q.t.Errorf("started %q, want %q", got, names)
	}
}

// Twenty hanging versions delay neither the first load of a good one, which comes before any of their second, nor, once
// its model has served, a later one, which starts while they all wait.
func TestHangingVersionsWaitBehindGoodOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueueTest(t)
		var hanging []string
		for i := range 20 {
			hanging = append(hanging, fmt.Sprintf("hang%02d", i))
			q.add(hanging[i], hanging[i], rankNew)
		}
		q.want(hanging[:6]...)
		q.add("good v1", "good", rankNew)
		for i := range 6 { // they ran into their limits, and are tried again
			q.end(hanging[i])
			q.want(hanging[6+i])
			q.add(hanging[i]+" again", hanging[i], rankFailed)
		}
		q.want()
		for i := 6; i < 14; i++ {
			q.end(hanging[i])
			q.want(hanging[i+6])
		}
		q.end(hanging[14])
		q.want("good v1")
		q.end("good v1")
		q.want(hanging[0] + " again")
		q.add("good v2", "good", rankKnown)
		q.want("good v2")
		for i := 15; i < 20; i++ {
			q.end(hanging[i])
		}
		q.want() // one of those that failed at a time
		q.end(hanging[0] + " again")
		q.want(hanging[1] + " again")
		q.end("good v2")
		for i := 1; i < 6; i++ {
			q.end(hanging[i] + " again")
		}
	})
}

// A model that has many versions loads one of them at a time, and others have their turn in between.
func TestModelsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueueTest(t)
		for i := range loadsAtOnce - keptForKnown - 1 {
			q.add(fmt.Sprintf("other %d", i), fmt.Sprintf("other%d", i), rankNew)
		}
		q.starts()
		for _, name := range []string{"many 1", "many 2", "many 3"} {
			q.add(name, "many", rankNew)
		}
		q.want("many 1")
		q.add("one", "one", rankNew)
		q.end("many 1")
		q.want("one")
		q.end("one")
		q.want("many 2")
		q.end("many 2")
		q.want("many 3")
		q.end("many 3")
		for i := range loadsAtOnce - keptForKnown - 1 {
			q.end(fmt.Sprintf("other %d", i))
		}
	})
}

// The places that are kept for models that have served before stay free when everything else loads.
func TestPlacesAreKeptForKnownModels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueueTest(t)
		for i := range 10 {
			q.add(fmt.Sprintf("new %d", i), fmt.Sprintf("new%d", i), rankNew)
		}
		if got := len(q.starts()); got != loadsAtOnce-keptForKnown {
			t.Errorf("%d new versions load at once, want %d", got, loadsAtOnce-keptForKnown)
		}
		q.add("known 1", "known1", rankKnown)
		q.add("known 2", "known2", rankKnown)
		q.want("known 1", "known 2")
		for i := range 10 {
			q.end(fmt.Sprintf("new %d", i))
		}
		q.end("known 1")
		q.end("known 2")
	})
}
