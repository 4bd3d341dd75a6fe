package subnet

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// wire is a Transport whose other side is a function.
type wire struct {
	answer func(p mad.Packet) []mad.Packet // called by Send
	fail   error                           // of Send

	mu     sync.Mutex
	cond   *sync.Cond
	queue  []mad.Packet
	closed bool
	flying int
	most   int
}

func newWire(answer func(mad.Packet) []mad.Packet) *wire {
	w := &wire{answer: answer}
	w.cond = sync.NewCond(&w.mu)
	return w
}

func (w *wire) Send(p *mad.Packet) error {
	if w.fail != nil {
		return w.fail
	}
	q := *p
	q.Data = slices.Clone(p.Data)
	list := w.answer(q)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flying++
	w.most = max(w.most, w.flying)
	w.queue = append(w.queue, list...)
	w.cond.Broadcast()
	return nil
}

func (w *wire) Receive(p *mad.Packet) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.closed {
		w.cond.Wait()
	}
	if w.closed {
		return net.ErrClosed
	}
	*p = w.queue[0]
	w.queue = w.queue[1:]
	w.flying--
	return nil
}

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.cond.Broadcast()
	return nil
}

// reply makes an answer with a status.
func reply(p mad.Packet, status mad.Status) mad.Packet {
	p.Data = slices.Clone(p.Data)
	p.Data[3] |= byte(mad.Response)
	p.Data[4], p.Data[5] = byte(status>>8), byte(status)
	// Transports change the upper half.
	mad.SetTransactionID(p.Data, mad.TransactionID(p.Data)|7<<48)
	return p
}

func TestGet(t *testing.T) {
	busy := 0
	w := newWire(func(p mad.Packet) []mad.Packet {
		var h mad.Header
		short.Check(t, h.Unmarshal(p.Data))
		switch h.Modifier {
		case 1: // not supported
			return []mad.Packet{reply(p, 3<<2)}
		case 2: // busy, twice
			if busy++; busy < 3 {
				return []mad.Packet{reply(p, mad.Busy)}
			}
		case 3: // never answered
			p.TimedOut = true
			p.Data = p.Data[:mad.HeaderSize]
			return []mad.Packet{p}
		case 4: // what is somebody else's comes first
			trap, other, short := reply(p, 0), reply(p, 0), reply(p, 0)
			trap.Data[3] = 5
			other.Data[17] ^= 1
			short.Data = short.Data[:10]
			return []mad.Packet{trap, other, short, reply(p, 0), reply(p, 0)}
		case 5: // too short to be a SMP
			r := reply(p, 0)
			r.Data = r.Data[:100]
			return []mad.Packet{r}
		}
		return []mad.Packet{reply(p, 0)}
	})
	c := New(w, Options{Timeout: 77 * time.Millisecond})
	to := Target{LID: 5}
	if _, err := c.Get(t.Context(), to, mad.AttrNodeInfo, 0); err != nil {
		t.Error(err)
	}
	var status *mad.StatusError
	if _, err := c.Get(t.Context(), to, mad.AttrNodeInfo, 1); !errors.As(err, &status) || status.Status != 12 {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), to, mad.AttrNodeInfo, 2); err != nil || busy != 3 {
		t.Errorf("%v after %d tries", err, busy)
	}
	if _, err := c.Get(t.Context(), to, mad.AttrNodeInfo, 3); !errors.Is(err, ErrTimeout) || err.Error() != "Get(NodeInfo, 0x3) to LID 5: no answer" {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), to, mad.AttrNodeInfo, 4); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), to, mad.AttrNodeInfo, 5); !errors.Is(err, mad.ErrShort) {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), Target{Route: make([]fabric.PortNum, 64)}, mad.AttrNodeInfo, 0); !errors.Is(err, errTooFar) || !strings.HasPrefix(err.Error(), "a route of 64 links, and directed routes have at most 63: ") {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), Target{Route: make([]fabric.PortNum, 63)}, mad.AttrNodeInfo, 0); err != nil {
		t.Error(err)
	}
	short.Check(t, c.Close())
	if _, err := c.Get(t.Context(), to, mad.AttrNodeInfo, 0); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// The window is full, and never more than that; every request gets its answer.
func TestWindow(t *testing.T) {
	var mu sync.Mutex
	var held []mad.Packet
	w := newWire(nil)
	w.answer = func(p mad.Packet) []mad.Packet {
		mu.Lock()
		defer mu.Unlock()
		// Backwards, as soon as the window is full or nothing else can come.
		held = append(held, reply(p, 0))
		if len(held) < 5 {
			return nil
		}
		list := slices.Clone(held)
		slices.Reverse(list)
		held = nil
		return list
	}
	c := New(w, Options{Window: 5})
	defer c.Close()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			data := mad.Data{0: byte(i)}
			got, err := c.SMP(t.Context(), Target{LID: 1}, mad.Set, mad.AttrPortInfo, uint32(i), &data)
			if err != nil || got[0] != byte(i) {
				t.Errorf("request %d: %v, %v", i, got[0], err)
			}
		})
	}
	wg.Wait()
	short.Equal(t, w.most, 5, "in flight, want 5")
}

// A caller that gives up does not hold the others, and what it had still queued
// is not sent.
func TestCancel(t *testing.T) {
	sent := 0
	var mu sync.Mutex
	w := newWire(func(p mad.Packet) []mad.Packet {
		mu.Lock()
		defer mu.Unlock()
		sent++
		if p.LID == 2 {
			return []mad.Packet{reply(p, 0)}
		}
		return nil
	})
	c := New(w, Options{Window: 2})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	n, err := c.run(ctx, func(b *batch) {
		for range 50 {
			b.get(Target{LID: 1}, mad.AttrPortInfo, 0, func(*mad.Data, error) error { return nil })
		}
	})
	if !errors.Is(err, context.Canceled) || n != 50 || sent != 2 {
		t.Errorf("%d requests, %d sent, %v", n, sent, err)
	}
	// The two that are in flight end with the client.
	time.AfterFunc(20*time.Millisecond, func() { c.Close() })
	if _, err := c.Get(t.Context(), Target{LID: 2}, mad.AttrPortInfo, 0); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	// The first error ends a batch.
	mu.Lock()
	sent = 0
	mu.Unlock()
	c = New(newWire(w.answer), Options{Window: 1})
	defer c.Close()
	stop := errors.New("stop")
	if _, err := c.run(t.Context(), func(b *batch) {
		for range 50 {
			b.get(Target{LID: 2}, mad.AttrPortInfo, 0, func(*mad.Data, error) error { return stop })
		}
	}); err != stop || sent > 3 {
		t.Errorf("%v after %d requests", err, sent)
	}
	// So does a transport that refuses.
	bad := newWire(nil)
	bad.fail = errors.New("no cable")
	c = New(bad, Options{Window: 1})
	defer c.Close()
	if _, err := c.Discover(t.Context()); err != nil && !strings.HasSuffix(err.Error(), "no cable") || err == nil {
		t.Error(err)
	}
}

// A node that does not answer, and one that is lost after it was found, are
// told, and the rest is there.
func TestProblems(t *testing.T) {
	s, twin := ibsimtest.Start(t, mesh4x4(t))
	f := twin.Fabric
	host := f.Owner(f.CAPorts()[0])
	mute := func(node fabric.NodeID, rate string) {
		t.Helper()
		for p := fabric.PortNum(0); p <= f.Node(node).NumPorts; p++ {
			if p == 0 && !f.IsSwitch(node) {
				continue
			}
			// It says what it has done.
			short.Check(t, s.Console(t.Context(), `error "`+twin.NodeID(node)+`"[`+string('0'+rune(p))+`] `+rate, func([]byte) {}))
		}
	}
	mute(host, "100")
	c := dial(t, s, "")
	d, err := c.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Fabric.NumNodes() != 31 || d.Fabric.NumSwitches() != 16 || len(d.Problems) != 1 ||
		!strings.Contains(d.Problems[0].String(), "has a link, but what is at its other end does not answer: Get(NodeInfo, 0x0) to route 0,") {
		t.Errorf("%d nodes, problems %v", d.Fabric.NumNodes(), d.Problems)
	}
	mute(host, "0")
	if d, err = c.Discover(t.Context()); err != nil || d.Fabric.NumNodes() != 32 || len(d.Problems) > 0 {
		t.Fatalf("%v, %v", d.Problems, err)
	}
	corner := fabric.NodeID(0)
	if corner == ibsimCentre(d) {
		corner = 15
	}
	mute(corner, "100")
	got := short.Must(c.Pull(t.Context(), d, PullOptions{LFT: true}))(t)
	for sw, ok := range got.Read {
		short.Equal(t, ok, (fabric.NodeID(sw) != corner), "switch", sw, "read")
	}
	if got.Read[corner] || len(got.Problems) == 0 || !strings.Contains(got.Problems[0].Message, "no answer") {
		t.Errorf("read %v, problems %v", got.Read, got.Problems)
	}
	for _, p := range got.LFT.Row(corner) {
		short.MustEqual(t, p, fabric.NoPath, "a table that was not read has", got.LFT.Row(corner))
	}
}

// ibsimCentre is the switch that the sweep started from.
func ibsimCentre(d *Discovery) fabric.NodeID { return d.Fabric.Owner(d.Local) }
