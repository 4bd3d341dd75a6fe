package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// Arrivals is the distribution of times between the messages of a host.
type Arrivals = word[arrivals]

type arrivals struct{}

func (arrivals) names() (what string, list []string) {
	return "arrivals", []string{"poisson", "deterministic"}
}

const (
	// Poisson has exponential times.
	Poisson Arrivals = iota
	// Periodic has equal times, from a random moment in the first period.
	Periodic
)

// Traffic describes the messages of hosts. In open loop each host has its own random numbers, so it
// sends the same messages at the same times, whatever the network does.
type Traffic struct {
	// Hosts send to each other; nil is all ports of CAs and routers that have a
	// LID and count for load. Pattern numbers them from 0.
	Hosts   []fabric.PortID
	Pattern Pattern
	// Load is the bytes that a host offers, headers not included, as a share of
	// its link's data rate; more than 0. A message to a group counts once.
	// Closed loop ignores it.
	Load     float64
	Arrivals Arrivals
	Bytes    int // of each message
	// Multicast is the share of messages, 0 to 1, that go to groups. A host
	// draws one of the groups to which it may send, or sends nothing if there is
	// none. Trees has the senders, the receivers and the MLID of each.
	Multicast float64
	Trees     []mft.Tree
	// Sources is how many of the hosts that may send to groups do so; 0 is all. They are drawn by
	// Seed; a smaller number draws a part of what a larger one draws.
	Sources int
	// Repeat replaces a message to a group by a unicast message to each receiver, by
	// ascending LIDs: the comparison of the mesh papers (X19). Trees then need no MLID.
	Repeat bool
	// SLs spreads messages over SL 0 to SLs-1, by the sum of the host's number
	// and the message's (X16). With Repeat each unicast message counts. 0 means
	// path SLs for unicast, and the SLs of trees for multicast.
	SLs int
	// Flows is the number of flows from one host to another: a host's
	// k-th message is in flow k mod Flows. 0 is 1.
	Flows int
	Seed  uint64
}

// Stop tells when a measurement ends.
type Stop struct {
	// WarmUp is when measuring begins; earlier messages do not count.
	WarmUp Time
	// RelativeError ends it when the 95 % confidence interval of the mean
	// latency, by batch means, is within this share of the mean; 0 never ends it.
	RelativeError float64
	// MinMessages must be complete before RelativeError ends it; 0 is 10,000.
	MinMessages int64
	// MaxTime ends it in any case.
	MaxTime Time
	// MaxQueue ends it as saturated when hosts have this many more packets
	// waiting, on average, than at the end of the warm-up. 0 is 1000.
	MaxQueue int64
}

// Measured is the result of a measurement.
type Measured struct {
	// Unicast and Multicast are the latencies of messages: from when they are
	// sent until all receivers have the last byte. All has both.
	Unicast, Multicast, All Latency
	// Receiver is the latency of multicast messages, counted for each receiver.
	Receiver Latency
	// Offered and Accepted are shares of what the hosts' links carry: the bytes
	// of data that hosts sent after the warm-up, and those that arrived. Each
	// copy of a message counts.
	Offered, Accepted float64
	// Saturated is true if packets pile up at hosts: Stop.MaxQueue was reached,
	// or a tenth of it when the time was up.
	Saturated bool
	// TimeUp is true if MaxTime ended it: without the wanted precision but not
	// Saturated, or in closed loop with packets under way.
	TimeUp bool
	// Time is when it ended. In closed loop it is the makespan, when the last
	// receiver had the last byte.
	Time Time
	// Incomplete counts messages, also of the warm-up, that were not complete at
	// the end. In closed loop it is 0 unless packets were dropped or the time
	// was up.
	Incomplete int64
	Counts     Counts
	Reordering *Reordering // nil without adaptive tables; the warm-up included
	Limits     *Limits     // nil with flits
}

// open sends open-loop traffic.
type open struct {
	Traffic
	to        Receivers
	lids      []fabric.LID
	sources   []source       // by host
	inTurn    bool           // a host takes its groups in turn
	trees     [][]int32      // by host: trees that it may send to
	receivers [][]fabric.LID // by tree, ascending; for Repeat
	flights   pool[flight]
	warm      Time
	out       *Measured
	bytesSent int64
	bytesGot  int64
	err       error
	limits    *limits
}

// source has what a host draws messages from; it fits a cache line.
type source struct {
	rng   *rand.Rand
	next  float64 // ps: time of the next message, not rounded
	rate  float64 // ps a byte
	mean  float64 // ps between messages
	drawn int64   // number of messages
	sl    int32   // SL of its next message, or of the next one of Repeat, if Traffic.SLs is set
}

// flight is a message under way.
type flight struct {
	born  Time
	left  int32 // deliveries still missing
	multi bool
	count bool
}

// check fills in defaults, and returns an error if the traffic is not valid.
func (o *open) check(s *Sim) error {
	f := s.net.Fabric
	if o.Hosts == nil {
		o.Hosts = text.Where(f.CAPorts(), func(p fabric.PortID) bool { return f.LID(p) != 0 && f.PortCounts(p, fabric.ForLoad) })
	}
	if len(o.Hosts) < 2 {
		return fmt.Errorf("traffic of %d hosts: want 2 or more", len(o.Hosts))
	}
	var err error
	if o.to, err = o.Pattern.For(len(o.Hosts), o.Seed); err != nil {
		return err
	}
	switch {
	case !(o.Load > 0) || o.Load > 1000:
		return fmt.Errorf("load %g: want more than 0", o.Load)
	case o.Bytes < 1 || o.Bytes > maxBytes:
		return fmt.Errorf("messages of %d bytes: want 1 to %d", o.Bytes, maxBytes)
	case !(o.Multicast >= 0 && o.Multicast <= 1):
		return fmt.Errorf("a share of %g multicast: want 0 to 1", o.Multicast)
	case o.SLs < 0 || o.SLs > 16:
		return fmt.Errorf("%d SLs: want 1 to 16", o.SLs)
	case o.Flows < 0 || o.Flows > 1<<30:
		return fmt.Errorf("%d flows: want 1 or more", o.Flows)
	}
	o.Flows = max(o.Flows, 1)
	index := make(map[fabric.PortID]int, len(o.Hosts))
	for i, p := range o.Hosts {
		if p < 0 || int(p) >= f.NumPorts() || f.IsSwitch(f.Owner(p)) || f.Peer(p) == fabric.NoPort || f.LID(p) == 0 {
			return fmt.Errorf("port %d cannot send: want one of a CA or router, with a cable and a LID", p)
		}
		if _, twice := index[p]; twice {
			return fmt.Errorf("%s sends twice", f.PortName(p))
		}
		index[p] = i
		o.lids = append(o.lids, f.LID(p))
		o.sources = append(o.sources, o.source(i, float64(s.ports[p].rate)/1024))
	}
	return o.checkTrees(f, index)
}

// checkTrees finds which hosts send to which groups.
func (o *open) checkTrees(f *fabric.Fabric, index map[fabric.PortID]int) error {
	o.trees = make([][]int32, len(o.Hosts))
	for k := range o.Trees {
		t := &o.Trees[k]
		for _, p := range t.Senders {
			if i, ok := index[p]; ok && reachesOther(t, p) {
				o.trees[i] = append(o.trees[i], int32(k))
			}
		}
	}
	senders := text.Indices[int](o.trees, func(trees []int32) bool { return len(trees) > 0 })
	switch {
	case o.Multicast > 0 && len(senders) == 0:
		return errors.New("multicast without a host that may send to a group")
	case o.Sources < 0 || o.Multicast > 0 && o.Sources > len(senders):
		return fmt.Errorf("%d sources of multicast: %d hosts may send to groups", o.Sources, len(senders))
	}
	if o.Sources > 0 {
		rng := rand.New(rand.NewPCG(o.Seed, 0x736f7572636573))
		rng.Shuffle(len(senders), func(i, j int) { senders[i], senders[j] = senders[j], senders[i] })
		for _, i := range senders[min(o.Sources, len(senders)):] {
			o.trees[i] = nil
		}
	}
	if !o.Repeat || o.Multicast == 0 {
		return nil
	}
	o.receivers = make([][]fabric.LID, len(o.Trees))
	for k, t := range o.Trees {
		for _, p := range t.Receivers {
			if f.LID(p) == 0 {
				return fmt.Errorf("group %q: %s receives, and has no LID", t.Name, f.PortName(p))
			}
			o.receivers[k] = append(o.receivers[k], f.LID(p))
		}
		slices.Sort(o.receivers[k])
	}
	return nil
}

// source returns the source of host i; its link takes rate ps a byte.
func (o *open) source(i int, rate float64) source {
	h := source{rng: rand.New(rand.NewPCG(o.Seed, uint64(i))), rate: rate, mean: rate * float64(o.Bytes) / o.Load}
	if o.SLs > 0 {
		h.sl = int32(i % o.SLs)
	}
	return h
}

// gap draws the time to the next message of a host, in ps.
func (o *open) gap(h *source) float64 {
	if o.Arrivals == Periodic {
		return h.mean
	}
	return -math.Log(1-h.rng.Float64()) * h.mean
}

func (o *open) start(s *Sim) {
	for i := range o.Hosts {
		h := &o.sources[i]
		h.next = o.gap(h)
		if o.Arrivals == Periodic {
			h.next *= h.rng.Float64()
		}
		s.Wake(Time(h.next), int64(i))
	}
}

// Wake sends the next message of host id.
func (o *open) Wake(s *Sim, id int64) {
	i := int(id)
	o.draw(s, i)
	h := &o.sources[i]
	h.next += o.gap(h)
	s.Wake(Time(h.next), id)
}

// draw sends the next message of host i, if there is one.
func (o *open) draw(s *Sim, i int) {
	h := &o.sources[i]
	rng := h.rng
	m := Message{Src: o.Hosts[i], Bytes: o.Bytes, SL: PathSL}
	k := h.drawn
	h.drawn++
	m.Flow = uint32(k % int64(o.Flows))
	if o.Multicast > 0 && rng.Float64() < o.Multicast {
		if n := len(o.trees[i]); n > 0 {
			at := int(k % int64(n))
			if !o.inTurn {
				at = rng.IntN(n)
			}
			o.sendGroup(s, m, i, o.trees[i][at])
		}
		return
	}
	if d := o.to(i, k, rng); d >= 0 && d != i {
		m.DLID = o.lids[d]
		m.Tag = o.fly(s, 1, false)
		o.send(s, m, i, 1)
	}
}

// sendGroup sends a message of host i to a group.
func (o *open) sendGroup(s *Sim, m Message, i int, tree int32) {
	t := &o.Trees[tree]
	copies := len(t.Receivers)
	if _, self := slices.BinarySearch(t.Receivers, m.Src); self {
		copies--
	}
	m.Tag = o.fly(s, copies, true)
	if !o.Repeat {
		m.DLID, m.SL = t.MLID, t.SL
		o.send(s, m, i, copies)
		return
	}
	for _, m.DLID = range o.receivers[tree] {
		if m.DLID != o.lids[i] {
			o.send(s, m, i, 1)
		}
	}
}

// fly begins a flight of a message, of which copies are to arrive, and returns the tag.
func (o *open) fly(s *Sim, copies int, multi bool) int64 {
	k := o.flights.get()
	o.flights.items[k] = flight{s.Now(), int32(copies), multi, s.Now() >= o.warm}
	return int64(k)
}

// send sends a message of host i; copies is the number of its receivers.
func (o *open) send(s *Sim, m Message, i, copies int) {
	if o.SLs > 0 {
		h := &o.sources[i]
		m.SL = fabric.SL(h.sl)
		if h.sl++; int(h.sl) == o.SLs {
			h.sl = 0
		}
	}
	if err := s.Send(m); err != nil && o.err == nil {
		o.err = err
	}
	if s.Now() >= o.warm {
		o.bytesSent += int64(m.Bytes) * int64(copies)
	}
}

// Deliver adds the latency of a message that is complete.
func (o *open) Deliver(s *Sim, d *Delivery) {
	if d.At >= o.warm {
		o.bytesGot += int64(d.Bytes)
	}
	if !d.Last {
		return
	}
	fl := &o.flights.items[d.Tag]
	if fl.multi && fl.count {
		o.out.Receiver.add(d.At - fl.born)
	}
	if fl.left--; fl.left > 0 {
		return
	}
	if fl.count {
		took := d.At - fl.born
		o.out.All.add(took)
		if fl.multi {
			o.out.Multicast.add(took)
		} else {
			o.out.Unicast.add(took)
		}
	}
	o.flights.put(int32(d.Tag))
}

// samplesPerStep is the number of samples of limits between two moments at which a measurement may
// end.
const samplesPerStep = 64

// Measure runs traffic on a network until stop ends it. Errors are those of New
// and Run, and invalid traffic or an invalid stop.
func Measure(ctx context.Context, net Network, cfg Config, traffic Traffic, stop Stop) (*Measured, error) {
	if stop.WarmUp < 0 || stop.MaxTime <= stop.WarmUp {
		return nil, fmt.Errorf("a measurement that ends at %s, and warms up until %s", stop.MaxTime, stop.WarmUp)
	}
	if !(stop.RelativeError >= 0) || stop.MinMessages < 0 || stop.MaxQueue < 0 {
		return nil, fmt.Errorf("a stop with less than nothing: %+v", stop)
	}
	stop.MinMessages, stop.MaxQueue = cmp.Or(stop.MinMessages, 10_000), cmp.Or(stop.MaxQueue, 1000)
	o := &open{Traffic: traffic, warm: stop.WarmUp, out: &Measured{}}
	s, err := New(net, cfg, o)
	if err != nil {
		return nil, err
	}
	if err := o.check(s); err != nil {
		return nil, err
	}
	o.start(s)
	if err := o.run(ctx, s, stop.WarmUp); err != nil {
		return nil, err
	}
	queued := s.Counts().Queued
	step := max(Time(float64(stop.MinMessages)/4*o.meanGap()), 1)
	o.limits = newLimits(s, o.Hosts, step/samplesPerStep)
	limit := stop.MaxQueue * int64(len(o.Hosts))
	// It may end at about a hundred moments, which depend on the traffic alone.
	for s.Now() < stop.MaxTime {
		if err := o.run(ctx, s, min(s.Now()+step, stop.MaxTime)); err != nil {
			return nil, err
		}
		if err := s.Deadlock(); err != nil {
			return nil, err
		}
		if s.Counts().Queued-queued > limit {
			o.out.Saturated = true
			break
		}
		if all := &o.out.All; stop.RelativeError > 0 && all.Count >= stop.MinMessages {
			if mean, half := all.Interval(); half <= stop.RelativeError*mean {
				break
			}
		}
	}
	return o.result(s, stop, queued+limit/10), nil
}

func (o *open) run(ctx context.Context, s *Sim, until Time) error {
	if err := o.limits.run(ctx, s, until); err != nil {
		return err
	}
	return o.err
}

// Gap returns the mean time between two messages of a host whose link carries
// mbps megabits of data a second, as in Config.Mbps.
func (t *Traffic) Gap(mbps int) Time {
	return Time(float64(bytePs(mbps)) / 1024 * float64(t.Bytes) / t.Load)
}

// meanGap returns the mean time between two messages of all hosts together.
func (o *open) meanGap() float64 {
	rate := 0.0
	for i := range o.sources {
		rate += o.Load / (o.sources[i].rate * float64(o.Bytes))
	}
	return 1 / rate
}

// result returns the measurement. If it lacks the wanted precision, it is saturated if
// more packets wait at hosts than crowded.
func (o *open) result(s *Sim, stop Stop, crowded int64) *Measured {
	m := o.out
	m.Time, m.Counts, m.Reordering = s.Now(), s.Counts(), s.Reordering()
	m.Incomplete = int64(o.flights.live())
	o.shares(stop.WarmUp)
	precise := false
	if stop.RelativeError > 0 && !m.Saturated {
		mean, half := m.All.Interval()
		precise = m.All.Count >= stop.MinMessages && half <= stop.RelativeError*mean
		if !precise {
			m.Saturated = m.Counts.Queued > crowded
			m.TimeUp = !m.Saturated
		}
	}
	m.Limits = o.limits.result(m.Time, !precise)
	return m
}

// shares computes Offered and Accepted.
func (o *open) shares(warm Time) {
	m := o.out
	capacity := 0.0 // bytes
	for i := range o.sources {
		capacity += float64(m.Time-warm) / o.sources[i].rate
	}
	if capacity > 0 {
		m.Offered = float64(o.bytesSent) / capacity
		m.Accepted = float64(o.bytesGot) / capacity
	}
}

// Burst measures a closed loop: at time 0 every host sends the given number
// of messages, and the measurement ends when all have arrived. Messages are
// as in open loop, except that a host takes the groups to which it may send
// in turn. Hosts begin in the order of Traffic.Hosts. With
// Traffic.Multicast 1, Sources 1 and one message it is one multicast, and
// Measured.Time the wait of the last receiver.
//
// Latencies count from time 0. Offered and Accepted are the bytes that were sent and that arrived
// as shares of what the hosts' links carry in the whole time. maxTime, if not 0, ends what would
// not end by itself, such as forwarding loops, and sets TimeUp. Errors are those of Measure.
func Burst(ctx context.Context, net Network, cfg Config, traffic Traffic, messages int, maxTime Time) (*Measured, error) {
	if messages < 1 {
		return nil, fmt.Errorf("a burst of %d messages: want 1 or more of each host", messages)
	}
	traffic.Load = 1
	b := &burst{open{Traffic: traffic, inTurn: true, out: &Measured{}}, messages}
	s, err := New(net, cfg, b)
	if err != nil {
		return nil, err
	}
	if err := b.check(s); err != nil {
		return nil, err
	}
	s.Wake(0, 0)
	b.limits = newLimits(s, b.Hosts, firstStep)
	if err := b.limits.runAll(ctx, s, maxTime, &b.err); err != nil {
		return nil, err
	}
	b.out.closed(s, b.limits)
	b.out.Incomplete = int64(b.flights.live())
	b.shares(0)
	return b.out, nil
}

// burst sends a closed loop.
type burst struct {
	open
	messages int
}

// Wake sends all messages.
func (b *burst) Wake(s *Sim, _ int64) {
	for range b.messages {
		for i := range b.Hosts {
			b.draw(s, i)
		}
	}
}

// closed sets the results of a closed loop.
func (m *Measured) closed(s *Sim, l *limits) {
	m.Counts, m.Reordering = s.Counts(), s.Reordering()
	m.Time = m.Counts.LastAt
	m.TimeUp = s.events.len() > 0
	m.Limits = l.result(m.Time, true)
}
