package subnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
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
	short.Check(t, err)
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

// defaultSMKey is the key by which OpenSM trusts a request unless it has another
// (OSM_DEFAULT_SA_KEY): it shows the ports of a group to such requests only.
const defaultSMKey uint64 = 1

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

// openSM runs OpenSM until the test ends.
func openSM(t testing.TB, s *ibsim.Sim, cfg ibsim.OpenSMConfig) *ibsim.OpenSM {
	t.Helper()
	short.NeedPrograms(t)
	cfg.Dir = t.TempDir()
	return short.Must(ibsim.StartOpenSM(t.Context(), s, cfg))(t)
}

func mesh4x4(t testing.TB) *fabric.Fabric {
	t.Helper()
	return fabrictest.WithLIDs(t, fabrictest.Grid(t, 1, false, 4, 4), 0)
}

func TestJoin(t *testing.T) {
	s, twin := ibsimtest.Start(t, mesh4x4(t))
	c := dial(t, s, "")
	if _, err := c.Manager(t.Context()); !errors.Is(err, ErrNoManager) {
		t.Errorf("without OpenSM: %v", err)
	}
	sm := openSM(t, s, ibsim.OpenSMConfig{})
	m := short.Must(c.Manager(t.Context()))(t)
	if m.SubnetPrefix != mad.DefaultSubnetPrefix || twin.Fabric.LIDPort(m.LID) == fabric.NoPort {
		t.Errorf("manager %+v", m)
	}
	hosts := twin.Fabric.CAPorts()
	port := func(i int) fabric.GUID { return twin.Fabric.PortGUID(hosts[i]) }
	mgid := netip.MustParseAddr("ff12:a01d:fe80::1")
	// state asks how a port takes part.
	state := func(i int) mad.JoinState {
		t.Helper()
		list := short.Must(c.Members(t.Context(), m, mad.MCMemberRecord{MGID: mgid, PortGID: mad.PortGID(m.SubnetPrefix, port(i))},
			mad.MCMemberMGID|mad.MCMemberPortGID, defaultSMKey))(t)
		switch len(list) {
		case 0:
			return 0
		case 1:
			if list[0].MGID != mgid || list[0].PortGID != mad.PortGID(m.SubnetPrefix, port(i)) || list[0].MLID != 0xc010 {
				t.Errorf("record %+v", list[0])
			}
			return list[0].JoinState
		}
		t.Fatalf("%d records", len(list))
		return 0
	}
	var noGroup *NoGroupError
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, Port: port(0), State: mad.SendOnlyNonMember}); !errors.As(err, &noGroup) {
		t.Errorf("a send-only member made a group: %v", err)
	}
	for i, want := range []mad.JoinState{mad.FullMember, mad.SendOnlyNonMember, mad.NonMember, mad.FullMember} {
		r, err := c.Join(t.Context(), m, Membership{MGID: mgid, MLID: 0xc010, Port: port(i), State: want})
		if err != nil || r.MLID != 0xc010 || r.JoinState != want {
			t.Fatalf("join of host %d: %+v, %v", i, r, err)
		}
		short.Equal(t, state(i), want, "host", i)
	}
	// The default state is a full member, and adds to what there is.
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, Port: port(1)}); err != nil {
		t.Error(err)
	}
	short.Equal(t, state(1), mad.FullMember|mad.SendOnlyNonMember, "host 1")
	// Another MLID is refused, and changes nothing.
	var wrong *MLIDError
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, MLID: 0xc011, Port: port(4)}); !errors.As(err, &wrong) || wrong.Got != 0xc010 {
		t.Errorf("a join with another MLID: %v", err)
	}
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, MLID: 0xc011, Port: port(0)}); !errors.As(err, &wrong) {
		t.Errorf("a leave with another MLID: %v", err)
	}
	short.Equal(t, state(4), 0, "host 4")
	// Untrusted requests see groups, not ports.
	list := short.Must(c.Members(t.Context(), m, mad.MCMemberRecord{}, 0, 0))(t)
	short.MustEqual(t, len(list), 2, "groups, want ours and the broadcast group")
	for _, r := range list {
		if r.JoinState != 0 || r.PortGID != netip.IPv6Unspecified() {
			t.Errorf("an untrusted request sees %+v", r)
		}
	}
	// Four records do not fit into one of libumad2sim.so's MADs.
	if _, err := c.Members(t.Context(), m, mad.MCMemberRecord{MGID: mgid}, mad.MCMemberMGID, defaultSMKey); !errors.Is(err, mad.ErrTruncated) {
		t.Errorf("a long list: %v", err)
	}
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, MLID: 0xc010, Port: port(1), State: mad.SendOnlyNonMember}); err != nil {
		t.Error(err)
	}
	short.Equal(t, state(1), mad.FullMember, "host 1", "after it left as a sender")
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, Port: port(0)}); err != nil {
		t.Error(err)
	}
	short.Equal(t, state(0), 0, "host 0", "after it left")
	var status *mad.StatusError
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, Port: port(0)}); !errors.As(err, &status) {
		t.Errorf("a port that left leaves: %v", err)
	}
	short.Check(t, sm.Stop())
	if run := sm.Run(); !run.UP || run.Version == "" {
		t.Errorf("run %+v", run)
	}
}

// watched is a transport that counts packets by class.
type watched struct {
	Transport
	mu      sync.Mutex
	classes map[mad.Class]int
	byLID   int // packets to QP0 with a LID
}

func (w *watched) Send(p *mad.Packet) error {
	w.mu.Lock()
	w.classes[mad.Class(p.Data[1])]++
	if p.QP == mad.QP0 && p.LID != mad.PermissiveLID {
		w.byLID++
	}
	w.mu.Unlock()
	return w.Transport.Send(p)
}

// Discover and Pull send SMPs by directed routes alone, which need neither tables nor LIDs:
// where tables send packets anywhere, all switches have one LID and hosts have none, they
// read what is there. Of a fabric of planes that is the plane where they start, since
// adapters pass no SMPs on.
func TestDirectedRoutesAlone(t *testing.T) {
	f := fabrictest.FatTree(t, 4, 2)
	f = short.Must(gen.Options{Planes: 4, AggregationNodes: true}.Apply(f))(t)
	s, twin := ibsimtest.Start(t, f)
	for plane, chip := range twin.Fabric.Systems()[0] {
		t.Run(fmt.Sprint(plane), func(t *testing.T) { readPlane(t, s, twin, chip) })
	}
}

// readPlane spoils a plane and reads it. Each has 6 switches with an aggregation node each,
// and ports of 8 hosts.
func readPlane(t *testing.T, s *ibsim.Sim, twin *ibsim.Twin, chip fabric.NodeID) {
	conn := short.Must(s.Dial(t.Context(), twin.NodeID(chip)))(t)
	w := &watched{Transport: conn, classes: map[mad.Class]int{}}
	c := New(w, Options{Timeout: 10 * time.Second})
	defer func() {
		short.Check(t, c.Close())
	}()
	d := short.Must(c.Discover(t.Context()))(t)
	const top = lft.BlockSize - 1
	rnd := rand.New(rand.NewPCG(1, 8))
	change := func(to Target, attr mad.Attribute, modifier uint32, edit func(*mad.Data)) {
		t.Helper()
		data, err := c.Get(t.Context(), to, attr, modifier)
		if err == nil {
			edit(&data)
			_, err = c.SMP(t.Context(), to, mad.Set, attr, modifier, &data)
		}
		short.Check(t, err)
	}
	want := make([][]fabric.PortNum, d.Fabric.NumSwitches())
	for sw := range want {
		to, ports := Target{Route: d.Routes[sw]}, int(d.Fabric.Node(fabric.NodeID(sw)).NumPorts)
		change(to, mad.AttrSwitchInfo, 0, func(b *mad.Data) { binary.BigEndian.PutUint16(b[6:], top) })
		change(to, mad.AttrLinearForwardingTable, 0, func(b *mad.Data) {
			for l := range b {
				b[l] = byte(rnd.IntN(ports + 1))
				want[sw] = append(want[sw], fabric.PortNum(b[l]))
			}
		})
		change(to, mad.AttrPortInfo, 0, func(b *mad.Data) {
			binary.BigEndian.PutUint16(b[16:], 1) // the LID of all switches
			b[32], b[33] = b[32]&0xf0, b[33]&0x0f // states stay
		})
	}
	again := short.Must(c.Discover(t.Context()))(t)
	got := short.Must(c.Pull(t.Context(), again, PullOptions{LFT: true, MFT: true, SL2VL: true}))(t)
	if g := again.Fabric; !fabric.SameTopology(g, d.Fabric) || g.NumSwitches() != 6 || g.NumNodes() != 20 || g.NumLinks() != 22 || slices.Contains(got.Read, false) || len(got.Problems) > 0 {
		t.Errorf("%d nodes and %d cables; tables of %d switches read: %v", g.NumNodes(), g.NumLinks(), len(got.Read), got.Problems)
	}
	if len(again.Problems) != 5 || !strings.Contains(again.Problems[0].Message, "LID 1 is another port's too") {
		t.Errorf("problems of the sweep: %v", again.Problems)
	}
	for sw := range want {
		if row := got.LFT.Row(fabric.NodeID(sw)); !slices.Equal(row[:len(want[sw])], want[sw]) {
			t.Errorf("switch %d has %v, want %v", sw, row, want[sw])
		}
	}
	if w.byLID > 0 || len(w.classes) != 1 || w.classes[mad.SubnDirected] == 0 {
		t.Errorf("packets by class: %v, %d SMPs by LID", w.classes, w.byLID)
	}
}

// The paths of a port are asked for at once where the answer fits into what
// libumad2sim.so lets through, which is three records, else one by one. All pairs of ports
// have an SL.
func TestPathSLs(t *testing.T) {
	for _, c := range []struct{ hosts, least, most int }{
		{2, 3, 3},           // a switch and two hosts: three records for each
		{3, 4*3 + 1, 4 * 4}, // four for each: what is cut off is asked for by itself
	} {
		f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{1}, Hosts: c.hosts}))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
		s, twin := ibsimtest.Start(t, f)
		client := dial(t, s, "")
		openSM(t, s, ibsim.OpenSMConfig{})
		sm := short.Must(client.Manager(t.Context()))(t)
		sls, requests := short.Must2(client.PathSLs(t.Context(), sm, twin.Fabric, 1))(t)
		if requests < c.least || requests > c.most {
			t.Errorf("%d hosts: %d requests, want %d to %d", c.hosts, requests, c.least, c.most)
		}
		if len(sls.Ports()) > 0 {
			t.Errorf("%d hosts: ports %v have rows of their own", c.hosts, sls.Ports())
		}
		for l := fabric.LID(1); l <= twin.Fabric.MaxLID(); l++ {
			short.Equal(t, sls.Given(0)[l], 0, c.hosts, "hosts: SL", "to LID", l)
		}
		// There is no such port, and so no record.
		want := mad.PathRecord{SLID: 1, DLID: 1000, NumPath: 1}
		list, err := askRecords[mad.PathRecord](t.Context(), client, sm, mad.PathRecordSize, &mad.Adm{
			Header:        mad.Header{Method: mad.Get, Attribute: mad.AttrPathRecord},
			ComponentMask: mad.PathSLID | mad.PathDLID | mad.PathNumPath, Data: want.Append(nil),
		})
		if status := new(mad.StatusError); len(list) > 0 || err != nil && !errors.As(err, &status) {
			t.Errorf("%d paths to nowhere, %v", len(list), err)
		}
	}
}
