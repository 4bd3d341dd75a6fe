package ibsim

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// ibsim's include/ibsim.h defines what its sockets carry: C
// structs in the byte order of the machine, in which LIDs,
// queue pairs, status and length are in network order.
const (
	simMagic   = 0xdeadbeef
	simCtlSize = 16 + 64 // struct sim_ctl: magic, client, type, length, data
	simReqHead = 32      // struct sim_request before the MAD
	simReqSize = simReqHead + mad.Size

	simCtlConnect    = 1
	simCtlDisconnect = 2

	simTimedOut = 110 // ETIMEDOUT of Linux, wherever ibsim runs
)

// ClientConfig tells how to reach a running ibsim. The zero value takes the
// environment variables that libumad2sim.so uses: IBSIM_SOCKNAME and SIM_HOST.
type ClientConfig struct {
	// Socket is the beginning of the names of ibsim's abstract sockets.
	Socket string
	// Node is the id or the description of the node that the client is
	// attached to, at most 31 bytes; "" is ibsim's default, the first one.
	Node string
}

// Client sends MADs to a running ibsim, like a program that is attached to a node: to port
// 1 of a CA, or port 0 of a switch. Like the kernel for a real device, it sends requests
// again that are not answered in time. Answers have one packet: libumad2sim.so cuts those
// of OpenSM off at 256 bytes. At most MaxClients can be connected to an ibsim.
//
// Send and Close are safe for concurrent use. Receive is for one goroutine.
type Client struct {
	ctl     net.Conn
	data    *net.UnixConn
	out     *net.UnixAddr // where data sends
	id      uint32
	node    string
	onClose func()

	mu      sync.Mutex
	waiting map[uint32]*exchange // by the lower half of the transaction ID
	expired []*exchange          // timed out, not yet received
	queue   []*exchange          // requests to be sent
	sending bool                 // a goroutine sends them
	closed  bool
	gone    error // ibsim has ended

	in [simReqSize + 1]byte
}

// exchange is a request that waits for its answer.
type exchange struct {
	request [simReqSize]byte
	timeout time.Duration
	retries int
	timer   *time.Timer // calls expire
}

// Dial connects to an ibsim. It is an error if no ibsim
// listens, or if ibsim does not accept the client.
func Dial(ctx context.Context, cfg ClientConfig) (*Client, error) {
	cfg.Socket = cmp.Or(cfg.Socket, os.Getenv("IBSIM_SOCKNAME"), "sim")
	cfg.Node = cmp.Or(cfg.Node, os.Getenv("SIM_HOST"))
	if len(cfg.Node) > 31 || strings.ContainsRune(cfg.Node, 0) {
		return nil, fmt.Errorf("ibsim takes names of nodes of at most 31 bytes, not %q", cfg.Node)
	}
	c := &Client{waiting: make(map[uint32]*exchange)}
	if err := c.connect(ctx, cfg); err != nil {
		c.closeSockets()
		return nil, err
	}
	return c, nil
}

// Dial connects a client to s, attached to a node (an id, as
// Twin.NodeID gives it, or a description; "" for Config.Host). It
// waits until ibsim has a free place, and keeps that until Close.
func (s *Sim) Dial(ctx context.Context, node string) (*Client, error) {
	if err := s.takeSlot(ctx); err != nil {
		return nil, err
	}
	node = cmp.Or(node, s.host)
	// ibsim reports that it is ready before it listens.
	var c *Client
	for deadline := time.Now().Add(10 * time.Second); ; {
		var err error
		if c, err = Dial(ctx, ClientConfig{Socket: s.socket, Node: node}); err == nil {
			break
		}
		select {
		case <-s.proc.done:
			err = s.ended()
		case <-time.After(5 * time.Millisecond):
			if errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(deadline) && ctx.Err() == nil {
				continue
			}
		}
		<-s.slots
		return nil, err
	}
	closed := make(chan struct{})
	c.onClose = func() {
		close(closed)
		<-s.slots
	}
	go func() {
		select {
		case <-s.proc.done:
			c.abandon(s.ended())
		case <-closed:
		}
	}()
	return c, nil
}

// abandon makes Receive return err, since ibsim has ended.
func (c *Client) abandon(err error) {
	c.mu.Lock()
	c.gone = err
	c.setReadDeadline(past)
	c.mu.Unlock()
	_ = c.ctl.SetDeadline(past) // fails if closed: then no caller waits
}

var past = time.Unix(1, 0)

// Socket returns the beginning of the names of ibsim's sockets (IBSIM_SOCKNAME).
func (s *Sim) Socket() string { return s.socket }

func (c *Client) connect(ctx context.Context, cfg ClientConfig) error {
	none := func(err error) error {
		return fmt.Errorf("no ibsim listens at the abstract socket %q: %w", cfg.Socket, err)
	}
	number, err := c.bind(cfg.Socket)
	if err != nil {
		return none(err)
	}
	var info [64]byte // struct sim_client_info: id, queue pair, is SM, node
	binary.NativeEndian.PutUint32(info[0:], number)
	copy(info[12:44], cfg.Node)
	answer, err := c.control(ctx, simCtlConnect, info)
	switch {
	case errors.Is(err, errControl):
		// ibsim gives no reason.
		if cfg.Node == "" {
			return fmt.Errorf("ibsim %w: it has %d clients already", errControl, MaxClients)
		}
		return fmt.Errorf("ibsim %w: it has no node %q, or %d clients already", errControl, cfg.Node, MaxClients)
	case err != nil:
		return none(err)
	}
	c.id = binary.NativeEndian.Uint32(answer[:])
	name, _, _ := strings.Cut(string(answer[12:44]), "\x00")
	c.node = name
	c.out = unixAddress(cfg.Socket, "out"+strconv.FormatUint(uint64(c.id), 10))
	return nil
}

// unixAddress returns one of ibsim's names, which end with the zero of a C string.
func unixAddress(socket, name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@" + socket + ":" + name + "\x00"}
}

// bind makes the sockets of a client, and gives it a number above
// all process ids, which libumad2sim.so uses as numbers.
func (c *Client) bind(socket string) (number uint32, err error) {
	for range 100 {
		number = 1<<30 | rand.Uint32N(1<<30)
		digits := strconv.FormatUint(uint64(number), 10)
		// ibsim connects to this one when it accepts the client.
		var in *net.UnixConn
		in, err = net.ListenUnixgram("unixgram", unixAddress(socket, "in"+digits))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, err
		}
		c.data = in
		ctl, err := net.DialUnix("unixgram", unixAddress(socket, "ctl"+digits), unixAddress(socket, "ctl"))
		if err != nil {
			return 0, errors.Unwrap(err)
		}
		c.ctl = ctl
		return number, nil
	}
	return 0, err
}

var errControl = errors.New("refuses the connection")

// answersWithin is how long ibsim may take to answer a sim_ctl.
const answersWithin = 10 * time.Second

// control sends a sim_ctl and returns the data of the answer.
func (c *Client) control(ctx context.Context, kind uint32, data [64]byte) (answer [64]byte, err error) {
	deadline := time.Now().Add(answersWithin)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.ctl.SetDeadline(deadline); err != nil {
		return answer, err
	}
	var b [simCtlSize]byte
	for i, v := range [4]uint32{simMagic, c.id, kind, uint32(len(data))} {
		binary.NativeEndian.PutUint32(b[4*i:], v)
	}
	copy(b[16:], data[:])
	if _, err := c.ctl.Write(b[:]); err != nil {
		return answer, err
	}
	n, err := c.ctl.Read(b[:])
	if err != nil {
		return answer, err
	}
	if n != len(b) || binary.NativeEndian.Uint32(b[:]) != simMagic {
		return answer, fmt.Errorf("an answer of %d bytes, want %d", n, len(b))
	}
	if got := binary.NativeEndian.Uint32(b[8:]); got != kind {
		return answer, errControl
	}
	copy(answer[:], b[16:])
	return answer, nil
}

// Node returns the id of the node that the client is attached to, cut to 31 bytes.
func (c *Client) Node() string { return c.node }

// Close disconnects from ibsim, so that the place is free,
// and ends Receive. It may be called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	gone := c.gone
	c.mu.Unlock()
	var err error
	if gone == nil {
		_, err = c.control(context.Background(), simCtlDisconnect, [64]byte{})
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil // ibsim ended first
		}
	}
	c.closeSockets()
	if c.onClose != nil {
		c.onClose()
	}
	return err
}

func (c *Client) closeSockets() {
	if c.ctl != nil {
		_ = c.ctl.Close()
	}
	if c.data != nil {
		_ = c.data.Close()
	}
}

// network16 puts a number in network order into a field of
// 32 bits in the order of the machine, as C does with htons.
func network16(b []byte, v uint16) {
	var n [2]byte
	binary.BigEndian.PutUint16(n[:], v)
	binary.NativeEndian.PutUint32(b, uint32(binary.NativeEndian.Uint16(n[:])))
}

func fromNetwork16(b []byte) uint16 {
	var n [2]byte
	binary.NativeEndian.PutUint16(n[:], uint16(binary.NativeEndian.Uint32(b)))
	return binary.BigEndian.Uint16(n[:])
}

// Send sends a MAD; it does not wait. ibsim takes MADs of one packet
// only. A MAD that expects an answer (p.Timeout) must differ from others
// in the lower 32 bits of its transaction ID; ibsim uses the upper 16.
// Receive returns the answer, or the MAD itself if no answer comes.
func (c *Client) Send(p *mad.Packet) error {
	if len(p.Data) != mad.Size {
		return fmt.Errorf("a MAD of %d bytes, want %d", len(p.Data), mad.Size)
	}
	x := &exchange{timeout: p.Timeout, retries: p.Retries}
	b := x.request[:]
	network16(b[0:], uint16(p.LID))
	if p.LID == mad.PermissiveLID {
		network16(b[4:], uint16(mad.PermissiveLID)) // with 0, ibsim fills in the LID
	}
	binary.BigEndian.PutUint32(b[8:], p.QP)
	binary.BigEndian.PutUint32(b[12:], p.QP) // our QP: 0 talks to 0, 1 to 1
	binary.BigEndian.PutUint64(b[24:], mad.Size)
	copy(b[simReqHead:], p.Data)

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case c.gone != nil:
		return c.gone
	case p.Timeout <= 0:
		c.write(x)
		return nil
	}
	key := uint32(mad.TransactionID(p.Data))
	if c.waiting[key] != nil {
		return fmt.Errorf("transaction %#x is under way already", key)
	}
	c.waiting[key] = x
	x.timer = time.AfterFunc(x.timeout, func() { c.expire(key, x) })
	c.write(x)
	return nil
}

func (c *Client) setReadDeadline(t time.Time) {
	_ = c.data.SetReadDeadline(t) // it fails on closed sockets only, which Receive notices
}

// write queues a request for sending, and does not wait. ibsim's socket has room
// for net.unix.max_dgram_qlen of them, 10 by default, and ibsim itself stops
// while a client's socket is full: a client that waited for room to write, and
// did not read meanwhile, would wait for ever. The caller holds the lock.
func (c *Client) write(x *exchange) {
	c.queue = append(c.queue, x)
	if !c.sending {
		c.sending = true
		go c.sendQueue()
	}
}

// sendQueue sends what is in the queue; it waits for room in the socket.
func (c *Client) sendQueue() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 || c.closed || c.gone != nil {
			c.queue, c.sending = nil, false
			c.mu.Unlock()
			return
		}
		x := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		// After other errors, such as ENOBUFS, the request times out and is sent again.
		_, err := c.data.WriteToUnix(x.request[:], c.out)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ENOENT) {
			c.abandon(fmt.Errorf("ibsim has gone: %w", err))
		}
	}
}

// Receive waits for the next MAD that comes in or stays without an answer, and
// puts it into p. p.Data is valid until the next call. Errors: net.ErrClosed
// after Close, and those of the sockets, which mean that ibsim has ended.
func (c *Client) Receive(p *mad.Packet) error {
	for {
		c.mu.Lock()
		if n := len(c.expired); n > 0 {
			x := c.expired[n-1]
			c.expired = c.expired[:n-1]
			c.mu.Unlock()
			c.unpack(p, x.request[:])
			p.TimedOut = true
			return nil
		}
		closed, gone := c.closed, c.gone
		c.mu.Unlock()
		if closed {
			return net.ErrClosed
		}
		if gone != nil {
			return gone
		}
		n, err := c.data.Read(c.in[:])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.mu.Lock()
			if c.gone == nil && len(c.expired) == 0 {
				c.setReadDeadline(time.Time{})
			}
			c.mu.Unlock()
			continue
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		case err != nil:
			return fmt.Errorf("ibsim has gone: %w", err)
		case n != simReqSize:
			continue // not from ibsim
		}
		if c.handle(p, c.in[:n]) {
			return nil
		}
	}
}

func (c *Client) unpack(p *mad.Packet, b []byte) {
	*p = mad.Packet{
		LID: fabric.LID(fromNetwork16(b[4:])), QP: binary.BigEndian.Uint32(b[12:]),
		Data: b[simReqHead:simReqSize],
	}
	// An answer with records may be shorter than a packet.
	if n := binary.BigEndian.Uint64(b[24:]); n < mad.Size && n >= mad.HeaderSize {
		p.Data = p.Data[:n]
	}
}

// handle processes a packet, and returns true if Receive should return it.
func (c *Client) handle(p *mad.Packet, b []byte) bool {
	m := b[simReqHead:]
	lost := binary.BigEndian.Uint32(b[16:]) == simTimedOut
	if !lost && !mad.IsResponse(m) {
		c.unpack(p, b) // a request or a trap
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := uint32(mad.TransactionID(m))
	x := c.waiting[key]
	switch {
	case x == nil:
		return false // answered or given up earlier
	case lost && x.retries > 0:
		// ibsim reports at once that it dropped a packet, or found no path.
		x.retries--
		x.timer.Reset(x.timeout)
		c.write(x)
		return false
	case lost:
		b = x.request[:]
	}
	x.timer.Stop()
	delete(c.waiting, key)
	c.unpack(p, b)
	p.TimedOut = lost
	return true
}

// expire sends a request again that had no answer in time, or gives it up.
func (c *Client) expire(key uint32, x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.waiting[key] != x || c.closed || c.gone != nil: // answered, or given up
	case x.retries > 0:
		x.retries--
		x.timer.Reset(x.timeout)
		c.write(x)
	default:
		delete(c.waiting, key)
		c.expired = append(c.expired, x)
		c.setReadDeadline(past) // wakes Receive
	}
}
