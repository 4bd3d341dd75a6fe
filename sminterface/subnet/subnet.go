// Package subnet talks to a live subnet, without C: it
// discovers nodes and cables, reads the forwarding tables,
// and joins and leaves multicast groups. The subnet is a
// simulated one (package ibsim) or a real one (package umad);
// both are a Transport. It makes no promise to other modules.
//
// Many requests are in flight at a time. They only read,
// except those of Client.SMP, Join and Leave.
package subnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// Transport carries MADs to and from a subnet, as package ibsim and package umad do. It
// repeats a packet without an answer, as often as the packet states, and then returns that
// packet itself (TimedOut). It matches answers by the lower 32 bits of their transaction IDs.
//
// Send does not wait for the answer, and may be called concurrently. Receive is called by one
// goroutine, until it returns an error; the data is valid until the next call. Close ends
// Receive.
type Transport interface {
	Send(p *mad.Packet) error
	Receive(p *mad.Packet) error
	Close() error
}

// Options tell how a Client sends. The zero value is usable.
type Options struct {
	// Window is the greatest number of requests in flight, by default
	// 8: less than the 10 datagrams that a socket of ibsim's has room
	// for, and a load that a switch's management agent bears.
	Window int
	// Timeout is how long to wait for an answer before the
	// request is sent again, by default a second. Retries is
	// how often, by default 3 times; below 0, not at all.
	Timeout time.Duration
	Retries int
	// MKey is put into SMPs, for a subnet that protects its ports with it.
	MKey uint64
}

// Client sends requests over a Transport, which it owns from New on, and
// finds the answers by their transaction IDs. It is safe for concurrent use.
type Client struct {
	t   Transport
	opt Options

	mu     sync.Mutex
	last   uint32           // last transaction ID
	flying map[uint32]*call // by transaction ID
	queue  []*call          // waiting for the window
	err    error            // why the Client has ended
	ended  chan struct{}    // closed when the receiver has ended
}

// call is a request and the handler of its answer.
type call struct {
	ctx    context.Context // once it is done, the call is not sent
	packet mad.Packet
	buf    [mad.Size]byte
	tries  int // how often it was sent again to a busy receiver
	// done is called once, never by the goroutine that starts
	// the call. The answer is valid during it.
	done func(answer []byte, err error)
}

// New makes a Client.
func New(t Transport, opt Options) *Client {
	opt.Window = cmp.Or(max(0, opt.Window), 8)
	opt.Timeout = cmp.Or(max(0, opt.Timeout), time.Second)
	opt.Retries = max(0, cmp.Or(opt.Retries, 3))
	c := &Client{t: t, opt: opt, flying: make(map[uint32]*call), ended: make(chan struct{})}
	go c.receive()
	return c
}

// Close ends the Client and its Transport; requests under way fail with ErrClosed.
func (c *Client) Close() error {
	err := c.t.Close()
	<-c.ended
	return err
}

// ErrClosed is the error of requests after the Client is closed.
var ErrClosed = errors.New("the connection to the subnet is closed")

// ErrTimeout is wrapped by the error for a request without an answer.
var ErrTimeout = errors.New("no answer")

// start sends a request, now or when the window allows.
func (c *Client) start(x *call) {
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		go x.done(nil, err) // the caller may hold a lock that done needs
		return
	}
	if len(c.flying) >= c.opt.Window {
		c.queue = append(c.queue, x)
		c.mu.Unlock()
		return
	}
	c.launch(x)
	c.mu.Unlock()
	c.send(x)
}

// launch gives a request its transaction ID. The caller holds the lock.
func (c *Client) launch(x *call) {
	for c.last++; c.last == 0 || c.flying[c.last] != nil; c.last++ {
	}
	mad.SetTransactionID(x.buf[:], uint64(c.last))
	c.flying[c.last] = x
}

// send gives a request to the transport.
func (c *Client) send(x *call) {
	err := c.t.Send(&x.packet)
	if err == nil {
		return
	}
	c.mu.Lock()
	id := uint32(mad.TransactionID(x.buf[:]))
	mine := c.flying[id] == x
	if mine {
		delete(c.flying, id)
	}
	next := c.next()
	c.mu.Unlock()
	if next != nil {
		c.send(next)
	}
	if mine {
		go x.done(nil, err)
	}
}

// next takes a request out of the queue if the window allows. The caller holds the lock.
func (c *Client) next() *call {
	for len(c.queue) > 0 && len(c.flying) < c.opt.Window {
		x := c.queue[0]
		c.queue = c.queue[1:]
		if x.ctx.Err() != nil {
			go x.done(nil, context.Cause(x.ctx))
			continue
		}
		c.launch(x)
		return x
	}
	return nil
}

// maxBusy is how often a request is sent again to a receiver that is busy.
const maxBusy = 6

// receive hands answers to their calls.
func (c *Client) receive() {
	defer close(c.ended)
	var p mad.Packet
	for {
		err := c.t.Receive(&p)
		if err != nil {
			c.end(err)
			return
		}
		if len(p.Data) < mad.HeaderSize || !p.TimedOut && !mad.IsResponse(p.Data) {
			continue // a foreign request, or a trap
		}
		c.mu.Lock()
		id := uint32(mad.TransactionID(p.Data))
		x := c.flying[id]
		if x == nil || x.buf[1] != p.Data[1] || [2]byte(x.buf[16:]) != [2]byte(p.Data[16:]) { // class and attribute
			c.mu.Unlock()
			continue
		}
		delete(c.flying, id)
		next := c.next()
		c.mu.Unlock()
		if next != nil {
			c.send(next) // first, so that the other side is busy meanwhile
		}
		switch {
		case p.TimedOut:
			x.done(nil, fmt.Errorf("%s: %w", describe(x.buf[:], x.packet.LID), ErrTimeout))
		case p.Data[5]&byte(mad.Busy) != 0 && x.tries < maxBusy:
			x.tries++
			time.AfterFunc(50*time.Millisecond<<x.tries, func() { c.start(x) })
		default:
			x.done(p.Data, nil)
		}
	}
}

// end fails all requests under way.
func (c *Client) end(err error) {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
		err = ErrClosed
	}
	c.mu.Lock()
	c.err = err
	left := slices.AppendSeq(c.queue, maps.Values(c.flying))
	clear(c.flying)
	c.queue = nil
	c.mu.Unlock()
	for _, x := range left {
		x.done(nil, err)
	}
}

// Target is the receiver of a SMP: a LID, or a directed route if LID
// is 0. A LID needs tables that lead there, and no second port with
// it. Discover and Pull rely on neither, and use only directed routes.
type Target struct {
	LID fabric.LID
	// Route has the output ports, that of the local node first.
	// The empty route is the local node.
	Route []fabric.PortNum
}

func (t Target) String() string {
	if t.LID != 0 {
		return "LID " + strconv.Itoa(int(t.LID))
	}
	return "route " + strings.Trim(strings.ReplaceAll(fmt.Sprint(append([]fabric.PortNum{0}, t.Route...)), " ", ","), "[]")
}

// describe returns a request in words.
func describe(b []byte, lid fabric.LID) string {
	var h mad.Header
	if h.Unmarshal(b) != nil {
		return "MAD"
	}
	text := fmt.Sprintf("%s(%s, %#x)", h.Method, h.Attribute.Name(h.Class), h.Modifier)
	switch h.Class {
	case mad.SubnDirected:
		t := Target{Route: make([]fabric.PortNum, min(int(b[7]), mad.MaxHops))}
		for i := range t.Route {
			t.Route[i] = fabric.PortNum(b[129+i])
		}
		return text + " to " + t.String()
	case mad.SubnAdm:
		return text + " to subnet administration at " + Target{LID: lid}.String()
	}
	return text + " to " + Target{LID: lid}.String()
}

// newSMP makes a request of subnet management. For a route too
// long, its error wraps errTooFar.
func (c *Client) newSMP(ctx context.Context, to Target, method mad.Method, attr mad.Attribute, modifier uint32, data *mad.Data) (*call, error) {
	s := mad.SMP{Header: mad.Header{BaseVersion: 1, Class: mad.SubnLID, ClassVersion: mad.SMPVersion, Method: method, Attribute: attr, Modifier: modifier}, MKey: c.opt.MKey}
	x := &call{ctx: ctx}
	x.packet = mad.Packet{LID: to.LID, QP: mad.QP0, Timeout: c.opt.Timeout, Retries: c.opt.Retries, Data: x.buf[:]}
	if to.LID == 0 {
		if len(to.Route) > mad.MaxHops {
			return nil, fmt.Errorf("a route of %d links, and %w: start nearer to the middle of the fabric", len(to.Route), errTooFar)
		}
		x.packet.LID = mad.PermissiveLID
		s.Class = mad.SubnDirected
		s.HopCount = uint8(len(to.Route))
		copy(s.InitialPath[1:], to.Route)
	}
	if data != nil {
		s.Data = *data
	}
	s.Marshal(&x.buf)
	return x, nil
}

// readSMP reads the answer to a request of newSMP.
func readSMP(x *call, answer []byte) (*mad.Data, error) {
	var s mad.SMP
	if err := s.Unmarshal(answer); err != nil {
		return nil, err
	}
	if s.Status != 0 {
		var request mad.Header
		if err := request.Unmarshal(x.buf[:]); err != nil {
			return nil, err
		}
		return nil, &mad.StatusError{Class: s.Class, Method: request.Method, Attribute: request.Attribute, Modifier: request.Modifier, Status: s.Status}
	}
	return &s.Data, nil
}

// startSMP reads an attribute. done is called like call.done.
func (c *Client) startSMP(ctx context.Context, to Target, attr mad.Attribute, modifier uint32, done func(*mad.Data, error)) {
	x, err := c.newSMP(ctx, to, mad.Get, attr, modifier, nil)
	if err != nil {
		go done(nil, err)
		return
	}
	x.done = func(answer []byte, err error) {
		var data *mad.Data
		if err == nil {
			data, err = readSMP(x, answer)
		}
		done(data, err)
	}
	c.start(x)
}

// roundTrip sends a request and waits for its answer.
func (c *Client) roundTrip(ctx context.Context, x *call) ([]byte, error) {
	type result struct {
		answer []byte
		err    error
	}
	ended := make(chan result, 1)
	x.done = func(answer []byte, err error) { ended <- result{slices.Clone(answer), err} }
	c.start(x)
	select {
	case r := <-ended:
		return r.answer, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errTooFar is wrapped by the error for a directed route that does not fit into a SMP.
var errTooFar = fmt.Errorf("directed routes have at most %d", mad.MaxHops)

// Get reads an attribute of subnet management. Errors: one that wraps
// ErrTimeout, a *mad.StatusError, ErrClosed, and ctx's.
func (c *Client) Get(ctx context.Context, to Target, attr mad.Attribute, modifier uint32) (mad.Data, error) {
	return c.SMP(ctx, to, mad.Get, attr, modifier, nil)
}

// SMP reads or writes an attribute of subnet management, by its method,
// and returns the value in the node's answer. Errors are as for Get.
func (c *Client) SMP(ctx context.Context, to Target, method mad.Method, attr mad.Attribute, modifier uint32, data *mad.Data) (mad.Data, error) {
	x, err := c.newSMP(ctx, to, method, attr, modifier, data)
	if err != nil {
		return mad.Data{}, err
	}
	answer, err := c.roundTrip(ctx, x)
	if err != nil {
		return mad.Data{}, err
	}
	now, err := readSMP(x, answer)
	if err != nil {
		return mad.Data{}, err
	}
	return *now, nil
}

// batch is a group of SMPs whose answers cause further ones.
// Answers are handled one at a time.
type batch struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex // held by answers, and by begin
	left int        // requests without an answer, and one for begin
	sent int        // requests
	err  error      // the first
	odd  []fabric.Problem
	done chan struct{}
}

// note notes a fault of a node or port. The caller holds the lock.
func (b *batch) note(where, format string, args ...any) {
	b.odd = append(b.odd, fabric.Problem{Kind: fabric.Missing, File: where, Message: fmt.Sprintf(format, args...), Count: 1})
}

// problems lists what was noted, sorted.
func (b *batch) problems() []fabric.Problem {
	slices.SortFunc(b.odd, func(x, y fabric.Problem) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Message, y.Message))
	})
	return slices.Compact(b.odd)
}

// run calls begin, which sends the first requests by get,
// and waits for all answers. Any error ends the batch: no
// more requests are sent. It returns the number of requests.
func (c *Client) run(ctx context.Context, begin func(*batch)) (requests int, err error) {
	b := &batch{c: c, done: make(chan struct{}), left: 1}
	b.ctx, b.cancel = context.WithCancel(ctx)
	defer b.cancel()
	b.mu.Lock()
	begin(b)
	b.countAnswer()
	b.mu.Unlock()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		b.fail(context.Cause(ctx)) // later answers change nothing
	}
	return b.sent, b.err
}

// fail ends the batch. The caller holds the lock.
func (b *batch) fail(err error) {
	if b.err == nil {
		b.err = err
		b.cancel()
	}
}

// countAnswer counts an answer. The caller holds the lock.
func (b *batch) countAnswer() {
	if b.left--; b.left == 0 {
		close(b.done)
	}
}

// get reads an attribute. The caller holds the lock; it is also held when answer
// is called, during which the data is valid. An error of answer ends the batch.
func (b *batch) get(to Target, attr mad.Attribute, modifier uint32, answer func(*mad.Data, error) error) {
	if b.err != nil {
		return
	}
	b.left++
	b.sent++
	b.c.startSMP(b.ctx, to, attr, modifier, func(d *mad.Data, err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.err == nil {
			if err := answer(d, err); err != nil {
				b.fail(err)
			}
		}
		b.countAnswer()
	})
}

// ask reads an attribute like get. It calls answer with the data, or missing
// with the reason why the request was lost. All other errors end the batch.
func (b *batch) ask(to Target, attr mad.Attribute, modifier uint32, answer func(*mad.Data), missing func(error)) {
	b.get(to, attr, modifier, func(data *mad.Data, err error) error {
		switch {
		case err == nil:
			answer(data)
		case !lost(err):
			return err
		default:
			missing(err)
		}
		return nil
	})
}

// lost returns true for an error that concerns only one
// request: no answer, a bad status, or a route too long.
func lost(err error) bool {
	_, status := errors.AsType[*mad.StatusError](err)
	return status || errors.Is(err, errTooFar) || errors.Is(err, ErrTimeout)
}
