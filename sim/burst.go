package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// Burst is closed loop: every host sends the same number of messages at once, at time 0, and
// the measurement ends when all have arrived. What a host sends is as in open loop,
// but that it takes the groups that it may send to in turn. Hosts begin in the order
// of Traffic.Hosts. With Traffic.Multicast 1, Sources 1 and one message it is one
// multicast, and Measured.Time how long the last receiver waits for it.
//
// Latencies are from time 0 on, and Offered and Accepted the bytes that were sent
// and have arrived as a share of what the hosts' links carry in the whole time.
// maxTime, if not 0, ends what does not end by itself: forwarding loops. It is
// TimeUp then. Errors are those of Measure.
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

// firstStep is the time between the first samples of limits in closed loop.
const firstStep = 100 * Nanosecond

// burst drives closed loop.
type burst struct {
	open
	messages int
}

// Wake sends everything.
func (b *burst) Wake(s *Sim, _ int64) {
	for range b.messages {
		for i := range b.Hosts {
			b.draw(s, i)
		}
	}
}

// runAll runs until nothing is left to do, or until maxTime where that is not 0. The error may be
// failed, of a message that could not be sent, or a deadlock.
func (l *limits) runAll(ctx context.Context, s *Sim, maxTime Time, failed *error) error {
	if err := l.run(ctx, s, cmp.Or(maxTime, Forever)); err != nil {
		return err
	}
	if *failed != nil {
		return *failed
	}
	return s.Deadlock()
}

// closed fills in how a closed loop ended.
func (m *Measured) closed(s *Sim, l *limits) {
	m.Counts, m.Reordering = s.Counts(), s.Reordering()
	m.Time = m.Counts.LastAt
	m.TimeUp = s.events.len() > 0
	m.Limits = l.result(m.Time, true)
}

// Play sends messages at their moments, in any order and those of one moment in the
// order of the slice, and measures of each the time from its moment until the last
// receiver has it. Tags are not used. A trace does not say who receives a message to a
// group: it is complete with the last copy that arrives. Offered and Accepted are 0.
// maxTime, if not 0, is as for Burst.
func Play(ctx context.Context, net Network, cfg Config, messages []Timed, maxTime Time) (*Measured, error) {
	if len(messages) == 0 {
		return nil, errors.New("a trace without messages")
	}
	p := &play{messages: slices.Clone(messages), at: make([]Time, len(messages)), out: &Measured{}}
	slices.SortStableFunc(p.messages, func(a, b Timed) int { return cmp.Compare(a.At, b.At) })
	for i := range p.messages {
		p.messages[i].Tag = int64(i)
	}
	if first := p.messages[0].At; first < 0 {
		return nil, fmt.Errorf("a message at %s, before the start", first)
	}
	s, err := New(net, cfg, p)
	if err != nil {
		return nil, err
	}
	s.Wake(p.messages[0].At, 0)
	var hosts []fabric.PortID
	for i := range p.messages {
		hosts = append(hosts, p.messages[i].Src)
	}
	slices.Sort(hosts)
	l := newLimits(s, slices.Compact(hosts), firstStep)
	if err := l.runAll(ctx, s, maxTime, &p.err); err != nil {
		return nil, err
	}
	m := p.out
	m.closed(s, l)
	for i := range p.messages {
		msg := &p.messages[i]
		if p.at[i] == 0 {
			m.Incomplete++
			continue
		}
		took := p.at[i] - msg.At
		m.All.add(took)
		if msg.DLID >= mft.MinMLID {
			m.Multicast.add(took)
		} else {
			m.Unicast.add(took)
		}
	}
	return m, nil
}

// play drives a trace.
type play struct {
	messages []Timed // by time
	at       []Time  // by message: when its last copy has arrived; 0 before any has
	out      *Measured
	err      error
}

// Wake sends all messages of this moment, of which id is the first.
func (p *play) Wake(s *Sim, id int64) {
	for ; id < int64(len(p.messages)); id++ {
		m := &p.messages[id]
		if m.At > s.Now() {
			s.Wake(m.At, id)
			return
		}
		if err := s.Send(m.Message); err != nil && p.err == nil {
			p.err = fmt.Errorf("message at %s: %w", m.At, err)
		}
	}
}

// Deliver takes times.
func (p *play) Deliver(_ *Sim, d *Delivery) {
	if !d.Last {
		return
	}
	p.at[d.Tag] = d.At
	if d.DLID >= mft.MinMLID {
		p.out.Receiver.add(d.At - d.Born)
	}
}
