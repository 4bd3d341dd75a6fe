package sim

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Resource tells what keeps hosts from sending.
type Resource = word[resources]

type resources struct{}

func (resources) names() (what string, list []string) {
	return "resource", []string{"offered", "host-link", "cable", "buffer", "credit"}
}

const (
	// Offered: nothing in the fabric. Hosts send all they have, or wait for messages of others.
	Offered Resource = iota
	// HostLink: the cable of a host is full, in one direction.
	HostLink
	// Cable: a cable between switches is full.
	Cable
	// Buffer: no cable is full. Packets wait in buffers behind others that wait for a link; with
	// larger buffers more would pass.
	Buffer
	// Credit: a buffer has room, but packets are still on their way to it, or credits on their way
	// back. The buffer is too small for the cable's length, or for the delays of switch and credits.
	Credit

	numResources
)

// Full is the share of the time that a link must send to count as full.
const Full = 0.9

// Limits tells what hosts did with their time, and what kept them from sending.
// It is sampled at many moments after the warm-up. A host that cannot send its
// packet waits for room in a buffer, whose first packet waits for a port, and so
// on, up to a link that sends or a credit that arrives. It is not measured with
// flits.
type Limits struct {
	// Limit is the resource of which more would help most.
	Limit Resource `json:"resource"`
	// Sending and Blocked are shares of the time of all hosts. In the rest they have nothing to send.
	Sending float64 `json:"sending"`
	Blocked float64 `json:"blocked"`
	// These are shares of Blocked by Resource.
	HostLink float64 `json:"by_host_link"`
	Cable    float64 `json:"by_cable"`
	Buffer   float64 `json:"by_buffer"`
	Credit   float64 `json:"by_credit"`
	// Link is the port whose link blocks hosts longest, of those that count for Limit; if none blocks,
	// the port of the busiest link.
	Link struct {
		Sender
		Busy float64 `json:"busy"` // share of the time that it sends
	} `json:"link"`
	FullHostLinks int `json:"full_host_links"` // number of full directions of links
	FullCables    int `json:"full_cables"`

	samples int // moments
}

// Sender is a port that sends into a cable.
type Sender struct {
	Node fabric.GUID    `json:"node"`
	Name string         `json:"name"`
	Port fabric.PortNum `json:"port"`
	Text string         `json:"text"` // for people
}

// NewSender returns port p of f as a Sender with Text "from -> to".
func NewSender(f *fabric.Fabric, p fabric.PortID) Sender {
	node := f.Owner(p)
	return Sender{f.Node(node).GUID, f.Name(node).Text, f.Num(p), strings.ReplaceAll(f.PortName(p)+" -> "+f.PortName(f.Peer(p)), `"`, "")}
}

// limits samples what hosts do and wait for.
type limits struct {
	s       *Sim
	hosts   []fabric.PortID
	from    Time
	busy    []Time // by port: Load.Busy when sampling began
	samples int
	step    Time // between samples
	// Time of all hosts together, by samples.
	sending, blocked, all Time
	links                 []Time       // by port: time of hosts blocked by its link, which sends
	credits               []Time       // by port: time of hosts blocked as it waits for credits
	waits                 *waitCounter // of jobs; nil for none
}

// maxSamples is the number of samples after which their step doubles.
const maxSamples = 2000

// newLimits begins to sample hosts, at first in the given step. It returns nil with flits.
func newLimits(s *Sim, hosts []fabric.PortID, step Time) *limits {
	if s.worms {
		return nil
	}
	n := len(s.ports)
	l := &limits{s: s, hosts: hosts, step: max(step, 1), from: s.Now(), busy: make([]Time, n), links: make([]Time, n), credits: make([]Time, n)}
	for p := range l.busy {
		l.busy[p] = s.ports[p].load.Busy
	}
	return l
}

// firstStep is the time between the first samples of limits in closed loop.
const firstStep = 100 * Nanosecond

// run is Sim.Run with samples, or without if l is nil.
func (l *limits) run(ctx context.Context, s *Sim, until Time) error {
	if l == nil {
		return s.Run(ctx, until)
	}
	for {
		next := until
		if until-s.Now() > l.step {
			next = s.Now() + l.step
		}
		if err := s.Run(ctx, next); err != nil || next == until || s.events.len() == 0 {
			return err
		}
		l.sample()
	}
}

// runAll runs until nothing is left to do, or until maxTime if that is not 0. It returns a
// deadlock, or the error in *failed, of a message that could not be sent.
func (l *limits) runAll(ctx context.Context, s *Sim, maxTime Time, failed *error) error {
	if err := l.run(ctx, s, cmp.Or(maxTime, Forever)); err != nil {
		return err
	}
	if *failed != nil {
		return *failed
	}
	return s.Deadlock()
}

// sample adds up what each host does now.
func (l *limits) sample() {
	now := l.s.events.now
	for _, h := range l.hosts {
		l.all += l.step
		switch pt := &l.s.ports[h]; {
		case pt.freeAt > now:
			l.sending += l.step
		case pt.waiting != 0:
			l.blocked += l.step
			if at, credit := l.s.blockerOn(int32(h), l.s.waitingVL(pt)); credit {
				l.credits[at] += l.step
			} else {
				l.links[at] += l.step
			}
		}
	}
	costly := false
	if l.waits != nil {
		l.waits.sample(l.step)
		costly = l.waits.isCostly()
	}
	if l.samples++; costly || l.samples%maxSamples == 0 {
		l.step *= 2
	}
}

// blockerOn finds what blocks the packets that wait for port p on VL vl, by following what each
// port waits for. It goes on past a port that sends if there is no room behind its link for another
// packet. It ends at a port whose link sends, or at one that waits for credits; then credit is
// true.
func (s *Sim) blockerOn(p, vl int32) (at int32, credit bool) {
	need := s.cells.items[s.branches.items[s.channels[s.ports[p].to*s.vls+vl].first].cell].flits
	for range 64 { // packets that wait in a cycle are a deadlock, found elsewhere
		pt := &s.ports[p]
		sends := pt.freeAt > s.events.now
		switch {
		case sends:
			vl = int32(pt.vl)
		case pt.waiting != 0:
			vl = s.waitingVL(pt)
		default: // with LockStep, a packet that waits elsewhere holds it
			return p, false
		}
		out := pt.to*s.vls + vl
		lane := &s.channels[out]
		if sends && (pt.sink || s.room-lane.used >= need) {
			return p, false
		}
		next := none
		switch {
		case lane.freeAt > s.events.now: // the packet before the first one still leaves
			next = s.leaving(out)
		case s.room-lane.used < need && lane.head != none:
			next = s.waitsFor(lane.head)
		}
		if next == none { // it waits for packets that arrive or are routed, or for credits
			return p, true
		}
		p = next
	}
	return p, false
}

// waitingVL returns the next VL on which packets wait for a port. There must be one.
func (s *Sim) waitingVL(pt *port) int32 {
	vl := s.nextVL(pt)
	for pt.waiting&(1<<vl) == 0 {
		if vl++; vl == s.vls {
			vl = 0
		}
	}
	return vl
}

// waitsFor returns the first port for which a cell waits; none if the cell still arrives, is routed
// or waits for its own tail.
func (s *Sim) waitsFor(c int32) int32 {
	for b := s.cells.items[c].branch; b != none; b = s.branches.items[b].sibling {
		if br := &s.branches.items[b]; br.waits {
			return br.port
		}
	}
	return none
}

// leaving returns the port by which the packet before the first one still leaves a buffer, or none.
func (s *Sim) leaving(in int32) int32 {
	port := fabric.PortID(s.channels[in].port)
	at := s.net.Fabric.Owner(port)
	if !s.net.Fabric.IsSwitch(at) {
		return none
	}
	for q := s.hubs[at].base; q < s.hubs[at].end; q++ {
		pt := &s.ports[q]
		if pt.to != none && pt.freeAt > s.events.now && s.channels[pt.to*s.vls+int32(pt.vl)].served == in {
			return q
		}
	}
	return none
}

// result returns what was sampled until end. wanted is true if hosts had, or may have had, more to
// send than they could, or if end is when they had sent everything.
func (l *limits) result(end Time, wanted bool) *Limits {
	if l == nil || end <= l.from || l.all == 0 || l.samples == 0 {
		return nil
	}
	s, r := l.s, &Limits{samples: l.samples}
	r.Sending, r.Blocked = float64(l.sending)/float64(l.all), float64(l.blocked)/float64(l.all)
	var by, most [numResources]Time
	var worst, busiest [numResources]fabric.PortID
	var busy [numResources]float64 // of busiest
	var full [numResources]int
	blame := func(why Resource, p fabric.PortID, t Time) {
		by[why] += t
		if t > most[why] {
			most[why], worst[why] = t, p
		}
	}
	for p := range fabric.PortID(len(s.ports)) {
		if s.net.Fabric.Peer(p) == fabric.NoPort {
			continue
		}
		kind, share := s.kind(p), l.busyShare(p, end)
		if share > busy[kind] {
			busy[kind], busiest[kind] = share, p
		}
		why := Buffer
		if share >= Full {
			why = kind
			full[kind]++
		}
		blame(why, p, l.links[p])
		blame(Credit, p, l.credits[p])
	}
	if n := float64(l.blocked); n > 0 {
		r.HostLink, r.Cable, r.Buffer, r.Credit = float64(by[HostLink])/n, float64(by[Cable])/n, float64(by[Buffer])/n, float64(by[Credit])/n
	}
	r.FullHostLinks, r.FullCables = full[HostLink], full[Cable]
	link := busiest[HostLink]
	if busy[Cable] > busy[HostLink] {
		link = busiest[Cable]
	}
	switch {
	case !wanted:
	case l.blocked > 0 && r.Blocked >= (1-Full)*(r.Blocked+r.Sending):
		for why := HostLink; why < numResources; why++ {
			if by[why] > by[r.Limit] {
				r.Limit = why
			}
		}
		link = worst[r.Limit]
	case busy[HostLink] >= Full:
		r.Limit, link = HostLink, busiest[HostLink]
	case busy[Cable] >= Full:
		r.Limit = Cable
	}
	r.Link.Sender, r.Link.Busy = NewSender(s.net.Fabric, link), l.busyShare(link, end)
	r.Link.Text = s.net.Fabric.PortName(link)
	return r
}

// busyShare returns the share of the time until end in which a port sent.
func (l *limits) busyShare(p fabric.PortID, end Time) float64 {
	return float64(l.s.ports[p].load.Busy-l.busy[p]) / float64(end-l.from)
}

// kind returns Cable for a link between switches, else HostLink.
func (s *Sim) kind(p fabric.PortID) Resource {
	f := s.net.Fabric
	if f.IsSwitch(f.Owner(p)) && f.IsSwitch(f.Owner(f.Peer(p))) {
		return Cable
	}
	return HostLink
}

// Waited is how long packets of job Job waited for Port while the last packet that Port had sent
// was of job By.
type Waited struct {
	Job, By int // indices in Jobs; the background has the next one
	Port    fabric.PortID
	// Time adds up all waiting packets: those in buffers of switches, and the first one of each host
	// and VL. It leaves out packets that wait in their host for packets of the same job.
	Time Time
}

// waitCounter counts what packets of jobs wait for.
type waitCounter struct {
	s     *Sim
	jobOf func(tag int64) int
	count []Time // by job: packets that wait for a port; scratch
	of    map[Waited]Time
	// How many packets were looked at since the step last grew, and the number of events then.
	looked, events int64
}

// Samples may look at one packet for each event, about a third of a simulation's work, and at 4
// million more. Beyond that the step grows.
const (
	looksPerEvent = 1
	freeLooks     = 1 << 22
)

// isCostly returns true if samples have looked at too many packets since it last returned true.
func (w *waitCounter) isCostly() bool {
	events := w.s.counts.Events
	if w.looked <= freeLooks+looksPerEvent*(events-w.events) {
		return false
	}
	w.looked, w.events = 0, events
	return true
}

// neverSent is the tag for a port that has sent nothing.
const neverSent = math.MinInt64

// sample adds step for each packet that waits now.
func (w *waitCounter) sample(step Time) {
	s := w.s
	for p := range s.ports {
		pt := &s.ports[p]
		for vl := int32(0); vl < s.vls && pt.waiting>>vl != 0; vl++ {
			if pt.waiting>>vl&1 == 0 {
				continue
			}
			w.countWaiting(int32(p), &s.channels[pt.to*s.vls+vl])
			at, _ := s.blockerOn(int32(p), vl)
			for job, n := range w.count {
				if w.count[job] = 0; n == 0 || s.sent[at] == neverSent {
					continue
				}
				by := w.jobOf(s.sent[at])
				if by == job && int32(p) == at && pt.isHost { // a host sends its packets one by one
					continue
				}
				w.of[Waited{Job: job, By: by, Port: fabric.PortID(at)}] += n * step
			}
		}
	}
}

// countWaiting counts, by job, packets on channel o that wait for port p, and those behind them in
// their buffers.
func (w *waitCounter) countWaiting(p int32, o *channel) {
	s := w.s
	for b := o.first; b != none; b = s.branches.items[b].next {
		br := &s.branches.items[b]
		if s.waitsFor(br.cell) != p { // counted there
			continue
		}
		for c := br.cell; c != none; c = s.cells.items[c].next {
			w.count[w.jobOf(s.packets.items[s.cells.items[c].packet].msg.Tag)]++
			w.looked++
		}
		if s.ports[p].isHost {
			return
		}
	}
}

// list returns the sums in the order of job, port and By.
func (w *waitCounter) list() []Waited {
	out := make([]Waited, 0, len(w.of))
	for x, t := range w.of {
		x.Time = t
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Waited) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Port, b.Port), cmp.Compare(a.By, b.By))
	})
	return out
}
