package lan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/papers/myrinet"
)

// Traffic is what hosts originate.
type Traffic struct {
	// Rate is how many worms a host originates in a byte time, by
	// a Poisson process (M22). Window replaces it.
	Rate float64
	// Multicast is the probability that a worm of a host which may send to a group
	// is multicast, to one of these groups with equal probability; else it is
	// unicast, to any other host with equal probability.
	Multicast float64
	// MeanBytes is the mean length of worms, which are geometrically distributed and
	// at least 1; MaxBytes, if not 0, cuts them.
	MeanBytes float64
	MaxBytes  int
	// Bytes, if not 0, is the length of all worms.
	Bytes int
	// Window, if not 0, makes every host originate without end.
	// While fewer than Window of its own worms wait to be sent (for
	// multicast, to all first successors), it prepares the next one,
	// which takes Prepare byte times and PrepareByte for each byte.
	Window      int
	Prepare     int
	PrepareByte float64
}

// Options are what Run simulates.
type Options struct {
	Fabric   *fabric.Fabric // each CA port with a cable is a host
	Tables   *lft.Tables    // their unicast routes
	Schedule *myrinet.Schedule
	Wires    Wires
	Adapters Adapters
	Traffic  Traffic
	Seed     uint64
	// Warmup is how long Run waits before it measures for Time: byte times.
	// Messages born in Time are measured, and traffic goes on for half as
	// long again. With Drain, Run then waits for all that is on its way.
	Warmup, Time int64
	Drain        bool
	// Messages, if not 0, is the number of multicast messages after which hosts
	// originate no more, and Time ends.
	Messages int64
	// Delivered, if not nil, is called for each multicast
	// message at each host that gets it, with a serial number
	// of the message; the originator gets its own where the
	// schedule brings it back.
	Delivered func(group int, host int32, serial int64)
}

// Mean is the mean of some values.
type Mean struct {
	N   int64
	Sum float64
}

func (m *Mean) add(v float64) {
	m.N++
	m.Sum += v
}

// Value returns the mean, NaN without values.
func (m Mean) Value() float64 { return m.Sum / float64(m.N) }

// HostResult counts the multicast worms that came to a host.
type HostResult struct {
	Came, Lost int64 // worms
	Bytes      int64 // taken in while measuring
}

// Result has the measurements of Run. Latencies are in byte times, from when a message
// is born to when its last byte has come.
type Result struct {
	Last Mean // latency of multicast messages, to the last member
	// Utilization is that of hosts' output links. Worms that are
	// passed on count, ACKs and what was cut off do not.
	Utilization float64
	// Born and Completed count multicast messages: originated, and arrived at all members.
	Born, Completed int64
	// Came counts messages, unicast too, that were born while
	// measuring, Went all that were delivered or lost in that
	// time. Early and Late are Last for messages born in the
	// first and in the second half of it. If a network carries
	// its load, Went is as large as Came, and latencies do not grow.
	Came, Went  int64
	Early, Late Mean
	// Expected counts copies of multicast messages that were born while measuring,
	// one for each member but the originator. Received counts those that have come.
	Expected, Received int64
	// Transmitted counts worms that hosts have sent: unicast, multicast.
	Transmitted [2]int64
	Nacks       int64
	MostFill    int // the most bytes in any slack buffer
	Hosts       []HostResult
}

// MulticastShare returns the share of multicast in the worms that hosts have sent.
func (r *Result) MulticastShare() float64 {
	return float64(r.Transmitted[1]) / float64(r.Transmitted[0]+r.Transmitted[1])
}

// DeadlockError says that host adapters wait for each other's buffers.
type DeadlockError struct {
	At       int64 // byte times
	Schedule *myrinet.Schedule
	Waits    []myrinet.Wait
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("at %d byte times buffers of host adapters wait for each other, as host/class: %s", e.At, e.Schedule.Witness(e.Waits))
}

func (o *Options) check() error {
	t, a := &o.Traffic, &o.Adapters
	switch {
	case t.Window == 0 && !(t.Rate > 0 && t.Rate < 1):
		return fmt.Errorf("%v worms in a byte time: want more than 0 and less than 1", t.Rate)
	case !(t.Multicast >= 0 && t.Multicast <= 1):
		return fmt.Errorf("multicast with probability %v", t.Multicast)
	case t.Bytes == 0 && !(t.MeanBytes >= 1 && t.MeanBytes <= 1<<20) || t.Bytes < 0 || t.Bytes > 1<<20 || t.MaxBytes < 0:
		return errors.New("worms have 1 byte to 1 MiB")
	case t.Window < 0 || t.Prepare < 0 || t.PrepareByte < 0:
		return errors.New("windows and times are not negative")
	case o.Warmup < 0 || o.Time <= 0 || o.Time > math.MaxInt64/8 || o.Warmup > math.MaxInt64/8:
		return errors.New("the measurement takes no time")
	case a.Buffer < 0 || a.Handle < 0 || !(a.HandleByte >= 0):
		return errors.New("buffers and times of adapters are not negative")
	case a.Acks && (a.Timeout < 1 || a.AckBytes < 1):
		return errors.New("ACKs have a length and a timeout")
	case a.Buffer > 0 && a.Acks && o.most() > a.Buffer:
		return fmt.Errorf("worms of up to %d bytes for buffers of %d: want room for one, or a MaxBytes", o.most(), a.Buffer)
	case len(o.Fabric.CAPorts()) < 2:
		return errors.New("fewer than two hosts")
	case slices.ContainsFunc(o.Schedule.Groups, func(g myrinet.Group) bool { return g.Method == myrinet.TwoPhase }):
		return errors.New("two-phase is for switches that copy: want another method")
	}
	return nil
}

// most returns the greatest length of worms.
func (o *Options) most() int {
	if o.Traffic.Bytes > 0 {
		return o.Traffic.Bytes
	}
	if o.Traffic.MaxBytes > 0 {
		return o.Traffic.MaxBytes
	}
	return math.MaxInt
}

// Run simulates. The same options give the same result. Errors:
// options that do not fit together, a schedule of other hosts or
// with faults (see myrinet.Report), a *DeadlockError, and ctx's.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	n, err := newNetwork(o.Fabric, o.Tables, o.Wires)
	if err != nil {
		return nil, err
	}
	a := &adapters{n: n, o: &o, s: o.Schedule, r: &Result{}, search: firstSearch, lanes: make(map[laneKey]*lane)}
	n.hosts = a
	if err := a.fill(); err != nil {
		return nil, err
	}
	stop := o.Warmup + o.Time + o.Time/2
	// Run in pieces, and look at ctx between them.
	piece := func(until int64) error {
		for at := n.now; at < until; {
			at = min(until, at+1<<20)
			if err := n.run(at); err != nil {
				return err
			}
			n.now = max(n.now, at)
			if err := ctx.Err(); err != nil {
				return err
			}
			if n.events.Len() == 0 {
				break
			}
		}
		return nil
	}
	if err := piece(o.Warmup); err != nil {
		return nil, err
	}
	before, bytes := a.sentBytes(), make([]int64, len(a.host))
	for i := range a.host {
		bytes[i] = a.host[i].got
	}
	if err := piece(o.Warmup + o.Time); err != nil {
		return nil, err
	}
	span := float64(n.now - o.Warmup)
	a.r.Utilization = float64(a.sentBytes()-before) / span / float64(len(a.host))
	for i := range a.host {
		a.r.Hosts = append(a.r.Hosts, HostResult{Bytes: a.host[i].got - bytes[i]})
	}
	if err := piece(stop); err != nil {
		return nil, err
	}
	if o.Drain || o.Messages > 0 {
		if err := piece(math.MaxInt64 / 2); err != nil {
			return nil, err
		}
		if err := a.empty(); err != nil {
			return nil, err
		}
	}
	return a.result(), nil
}

// sentBytes returns how many bytes hosts have sent.
func (a *adapters) sentBytes() (sum int64) {
	for i := range a.host {
		sum += a.n.chans[a.host[i].out].sent
	}
	return sum
}

// fill makes the hosts and their first messages.
func (a *adapters) fill() error {
	f := a.o.Fabric
	a.host = make([]adapter, len(f.CAPorts()))
	a.lids = make([]fabric.LID, len(a.host))
	byPort := make(map[fabric.PortID]int32, len(a.host))
	for i, p := range f.CAPorts() {
		a.lids[i] = f.LID(p)
		byPort[p] = int32(i)
		h := &a.host[i]
		*h = adapter{at: none, sending: none, out: p, rng: rand.New(rand.NewPCG(a.o.Seed, uint64(i)))}
		for range a.s.Classes + 1 {
			h.free = append(h.free, int32(a.o.Adapters.Buffer))
		}
		for _, q := range f.CAPorts() {
			if p == q {
				continue
			}
			if _, err := a.o.Tables.Path(f, p, f.LID(q), nil); err != nil {
				return err
			}
		}
	}
	a.hostOf = make([]int32, len(a.s.Hosts))
	for i, x := range a.s.Hosts {
		h, ok := byPort[f.LIDPort(x.LID)]
		if !ok || f.PortGUID(f.CAPorts()[h]) != x.Port {
			return fmt.Errorf("host %d of the schedule has LID %d and port GUID %s, and the fabric has no such host", x.ID, x.LID, x.Port)
		}
		a.hostOf[i] = h
		a.host[h].at = int32(i)
	}
	if r := a.s.Check(); len(r.Faults) > 0 {
		return errors.New(a.s.Explain(r)[0])
	}
	for g := range a.s.Groups {
		x := &a.s.Groups[g]
		if len(x.Members) < 2 {
			continue
		}
		for _, m := range x.Senders {
			h := &a.host[a.hostOf[m]]
			h.groups = append(h.groups, int32(g))
		}
	}
	t := &a.o.Traffic
	for i := range a.host {
		h := &a.host[i]
		if t.Window > 0 {
			if t.Multicast < 1 || len(h.groups) > 0 {
				a.n.push(h.rng.Int64N(1000), evBirth, int32(i), 0)
			}
			continue
		}
		h.next = a.interval(h)
		a.n.push(h.next, evBirth, int32(i), 0)
	}
	return nil
}

// Sends returns how many worms are sent for one that a host originates, averaged
// over hosts: 1 for unicast, and for multicast what the schedule says. The load
// offered to a host's link is Traffic.Rate times that and the mean length.
func (o *Options) Sends() float64 {
	hosts := len(o.Fabric.CAPorts())
	sum := float64(hosts)
	// By host: sends for each group that it sends to.
	by := make([][]float64, len(o.Schedule.Hosts))
	for g := range o.Schedule.Groups {
		x := &o.Schedule.Groups[g]
		if len(x.Members) < 2 {
			continue
		}
		for _, m := range x.Senders {
			one := *o.Schedule
			one.Groups = []myrinet.Group{*x}
			one.Groups[0].Senders = []int32{m}
			by[m] = append(by[m], float64(one.Check().Sends))
		}
	}
	for _, sends := range by {
		for _, n := range sends {
			sum += o.Traffic.Multicast * (n - 1) / float64(len(sends))
		}
	}
	return sum / float64(hosts)
}

// interval draws the byte times to the next worm of a Poisson process.
func (a *adapters) interval(h *adapter) int64 {
	return int64(math.Ceil(h.rng.ExpFloat64() / a.o.Traffic.Rate))
}

// length draws the bytes of a worm.
func (a *adapters) length(h *adapter) int32 {
	t := &a.o.Traffic
	if t.Bytes > 0 {
		return int32(t.Bytes)
	}
	// Geometric from 1 on, by inversion.
	n := 1.0
	if t.MeanBytes > 1 {
		n += math.Floor(math.Log(1-h.rng.Float64()) / math.Log(1-1/t.MeanBytes))
	}
	most := float64(1 << 24)
	if t.MaxBytes > 0 {
		most = float64(t.MaxBytes)
	}
	return int32(min(n, most))
}

func (a *adapters) measures() bool {
	return a.n.now >= a.o.Warmup && a.n.now < a.o.Warmup+a.o.Time
}

// birth handles the moment at which a host originates a message.
func (a *adapters) birth(host int32) {
	h := &a.host[host]
	t := &a.o.Traffic
	if a.n.now >= a.o.Warmup+a.o.Time+a.o.Time/2 || a.o.Messages > 0 && a.r.Born >= a.o.Messages {
		return
	}
	bytes := a.length(h)
	group := none
	if len(h.groups) > 0 && h.rng.Float64() < t.Multicast {
		group = h.groups[h.rng.IntN(len(h.groups))]
	}
	measured := a.measures()
	if measured {
		a.r.Came++
	}
	a.serial++
	m := newItem(&a.msgs, &a.freeMsg, message{group: group, origin: host, bytes: bytes, left: 1, born: a.n.now, serial: a.serial, measured: measured})
	h.backlog++
	if group == none {
		to := int32(h.rng.IntN(len(a.host) - 1))
		if to >= host {
			to++
		}
		a.msgs[m].refs++
		a.enqueue(host, newItem(&a.worms, &a.freeWorm, worm{kind: unicastWorm, msg: m, job: none, from: host, to: to, bytes: bytes, copy: none}))
	} else {
		a.r.Born++
		g := &a.s.Groups[group]
		a.msgs[m].left = int32(len(g.Members) - 1)
		if measured {
			a.r.Expected += int64(a.msgs[m].left)
		}
		hops := int32(g.Hops)
		if hops == 0 {
			hops = -1
		}
		c := newItem(&a.copies, &a.freeCopy, copyOf{msg: m, host: host, from: myrinet.Anyone, held: myrinet.SendBuffer, hops: hops, coming: none, used: true})
		a.msgs[m].refs++
		a.copies[c].pending = int32(len(a.sends(c)))
		a.handle(c)
	}
	h = &a.host[host]
	if t.Window == 0 {
		h.next += a.interval(h)
		a.n.push(h.next-a.n.now, evBirth, host, 0)
	} else if h.backlog < int32(t.Window) {
		a.n.push(a.prepare(bytes), evBirth, host, 0)
	} else {
		h.full = true
	}
}

// prepare returns how long a host is busy with its next worm,
// as if that had the length of the last one.
func (a *adapters) prepare(bytes int32) int64 {
	return max(1, int64(a.o.Traffic.Prepare)+int64(a.o.Traffic.PrepareByte*float64(bytes)))
}

// launched handles the moment at which a host has sent a message of its own.
func (a *adapters) launched(host, bytes int32) {
	h := &a.host[host]
	h.backlog--
	if h.full {
		h.full = false
		a.n.push(a.prepare(bytes), evBirth, host, 0)
	}
}

// empty returns an error unless everything has come to its end.
func (a *adapters) empty() error {
	if slices.ContainsFunc(a.copies, func(c copyOf) bool { return c.used }) {
		if a.stuck(); a.n.broken != nil {
			return a.n.broken
		}
		return errors.New("the simulator is wrong: copies wait, and nothing happens")
	}
	if len(a.freeWorm) != len(a.worms) || len(a.freeMsg) != len(a.msgs) || len(a.n.free) != len(a.n.hops) {
		return fmt.Errorf("the simulator is wrong: %d worms, %d messages and %d hops are left",
			len(a.worms)-len(a.freeWorm), len(a.msgs)-len(a.freeMsg), len(a.n.hops)-len(a.n.free))
	}
	return nil
}

func (a *adapters) result() *Result {
	r := a.r
	r.MostFill = int(a.n.mostFill)
	for i := range a.host {
		h := &a.host[i]
		r.Transmitted[0] += h.transmitted[0]
		r.Transmitted[1] += h.transmitted[1]
		r.Hosts[i].Came, r.Hosts[i].Lost = h.came, h.lost
	}
	return r
}
