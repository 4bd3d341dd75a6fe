package ibsim

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// request is a Get by directed route.
func request(id uint64, attr mad.Attribute, timeout time.Duration, retries int, route ...fabric.PortNum) *mad.Packet {
	s := mad.SMP{Header: mad.Header{BaseVersion: 1, Class: mad.SubnDirected, ClassVersion: 1, Method: mad.Get, TransactionID: id, Attribute: attr},
		HopCount: uint8(len(route))}
	copy(s.InitialPath[1:], route)
	var b [mad.Size]byte
	s.Marshal(&b)
	return &mad.Packet{LID: mad.PermissiveLID, Timeout: timeout, Retries: retries, Data: b[:]}
}

// receive waits for one packet.
func receive(t *testing.T, c *Client) mad.Packet {
	t.Helper()
	var p mad.Packet
	short.Check(t, c.Receive(&p))
	return p
}

// guid asks who is at the end of a route.
func guid(t *testing.T, c *Client, id uint64, route ...fabric.PortNum) fabric.GUID {
	t.Helper()
	short.Check(t, c.Send(request(id, mad.AttrNodeInfo, 10*time.Second, 3, route...)))
	p := receive(t, c)
	var s mad.SMP
	if err := s.Unmarshal(p.Data); err != nil || p.TimedOut || s.Status != 0 || p.Data[4]&0x80 == 0 || uint32(s.TransactionID) != uint32(id) {
		t.Fatalf("%+v, %+v, %v", p, s, err)
	}
	var n mad.NodeInfo
	n.Unmarshal(&s.Data)
	return n.GUID
}

func TestClient(t *testing.T) {
	f := mesh4x4(t)
	s, twin := startTwin(t, f)
	sw := fabric.NodeID(5)
	c := short.Must(s.Dial(t.Context(), twin.NodeID(sw)))(t)
	short.Equal(t, c.Node(), twin.NodeID(sw), "attached")
	short.Equal(t, guid(t, c, 1), twin.Fabric.Node(sw).GUID, "the local node")
	ports, to := twin.Fabric.SwitchLinks(sw)
	for i, p := range ports {
		short.Equal(t, guid(t, c, uint64(i)+2, twin.Fabric.Num(p)), twin.Fabric.Node(to[i]).GUID, "behind port", twin.Fabric.Num(p))
	}
	// A port without a cable: ibsim says so, as often as we ask.
	short.Check(t, c.Send(request(9, mad.AttrNodeInfo, time.Minute, 5, 20)))
	if p := receive(t, c); !p.TimedOut || uint32(mad.TransactionID(p.Data)) != 9 {
		t.Errorf("%+v", p)
	}
	// Two requests with one ID cannot be told apart.
	stop(t, s)
	short.Check(t, c.Send(request(10, mad.AttrNodeInfo, time.Minute, 0)))
	if err := c.Send(request(10, mad.AttrNodeInfo, time.Minute, 0)); err == nil {
		t.Error("a transaction ID was taken twice")
	}
	if err := c.Send(&mad.Packet{Data: make([]byte, 300)}); err == nil {
		t.Error("300 bytes were sent")
	}
	resume(t, s)
	receive(t, c)
	short.Check(t, errors.Join(c.Close(), c.Close()))
	var p mad.Packet
	if err := c.Receive(&p); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive after Close: %v", err)
	}
	if err := c.Send(request(1, mad.AttrNodeInfo, time.Second, 0)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
	if err := s.Console(t.Context(), "attached", func(line []byte) {
		if strings.HasPrefix(string(line), "Client ") {
			t.Errorf("still there: %s", line)
		}
	}); err != nil {
		t.Error(err)
	}
}

// stop and resume hold ibsim still, so that nothing is answered.
func stop(t *testing.T, s *Sim) {
	t.Helper()
	short.Check(t, s.proc.cmd.Process.Signal(syscall.SIGSTOP))
	stat := filepath.Join("/proc", strconv.Itoa(s.proc.cmd.Process.Pid), "stat")
	short.Await(t, func() bool { return strings.Contains(string(short.Must(os.ReadFile(stat))(t)), ") T ") }, "ibsim does not stop")
}

func resume(t *testing.T, s *Sim) {
	t.Helper()
	short.Check(t, s.proc.cmd.Process.Signal(syscall.SIGCONT))
}

// What is not answered is sent again, and given up in the end. Answers that
// come too late are dropped.
func TestClientTimeout(t *testing.T) {
	s, _ := startTwin(t, mesh4x4(t))
	c := short.Must(s.Dial(t.Context(), ""))(t)
	defer c.Close()
	stop(t, s)
	began := time.Now()
	for id := uint64(1); id <= 3; id++ {
		short.Check(t, c.Send(request(id, mad.AttrNodeInfo, 40*time.Millisecond, int(id))))
	}
	var order []uint32
	for range 3 {
		p := receive(t, c)
		id := uint32(mad.TransactionID(p.Data))
		if !p.TimedOut {
			t.Errorf("%+v", p)
		}
		if took, least := time.Since(began), time.Duration(id+1)*40*time.Millisecond; took < least {
			t.Errorf("request %d was given up after %v, want %v", id, took, least)
		}
		order = append(order, id)
	}
	if order[0] != 1 || order[2] != 3 {
		t.Errorf("given up in the order %v", order)
	}
	resume(t, s)
	if got := guid(t, c, 4); got == 0 {
		t.Error("no answer")
	}
	// One that is answered the second time.
	stop(t, s)
	short.Check(t, c.Send(request(5, mad.AttrNodeInfo, 50*time.Millisecond, 100)))
	time.AfterFunc(120*time.Millisecond, func() { resume(t, s) })
	if p := receive(t, c); p.TimedOut || uint32(mad.TransactionID(p.Data)) != 5 {
		t.Errorf("%+v", p)
	}
}

// More than the socket takes is kept, and every wait ends.
func TestClientBacklog(t *testing.T) {
	s, _ := startTwin(t, mesh4x4(t))
	c := short.Must(s.Dial(t.Context(), ""))(t)
	defer c.Close()
	const count = 500
	stop(t, s)
	for id := range uint64(count) {
		short.Check(t, c.Send(request(id+1, mad.AttrNodeInfo, time.Minute, 0)))
	}
	resume(t, s)
	seen := make(map[uint32]bool)
	for range count {
		p := receive(t, c)
		if id := uint32(mad.TransactionID(p.Data)); p.TimedOut || seen[id] {
			t.Fatalf("%d: %+v", id, p)
		} else {
			seen[id] = true
		}
	}
}

// A link that loses every fifth packet does not lose answers.
func TestClientLoss(t *testing.T) {
	s, twin := startTwin(t, mesh4x4(t))
	c := short.Must(s.Dial(t.Context(), twin.NodeID(0)))(t)
	defer c.Close()
	ports, to := twin.Fabric.SwitchLinks(0)
	peer := twin.Fabric.Peer(ports[0])
	if err := s.Console(t.Context(), `error "`+twin.NodeID(to[0])+`"[`+strconv.Itoa(int(twin.Fabric.Num(peer)))+`] 20`, nil); err != nil && !strings.Contains(err.Error(), "error rate") {
		t.Fatal(err)
	}
	lost := 0
	for id := uint64(1); id <= 200; id++ {
		short.Check(t, c.Send(request(id, mad.AttrNodeInfo, 10*time.Second, 0, twin.Fabric.Num(ports[0]))))
		if receive(t, c).TimedOut {
			lost++
		}
	}
	if lost < 10 || lost > 120 {
		t.Errorf("%d of 200 lost, want about 40", lost)
	}
	for id := uint64(201); id <= 400; id++ {
		short.Check(t, c.Send(request(id, mad.AttrNodeInfo, 10*time.Second, 30, twin.Fabric.Num(ports[0]))))
		if p := receive(t, c); p.TimedOut {
			t.Errorf("request %d was lost in spite of 30 retries", id)
		}
	}
}

func TestClientRefused(t *testing.T) {
	s, twin := startTwin(t, mesh4x4(t))
	if _, err := s.Dial(t.Context(), "no such node"); !errors.Is(err, errControl) || !strings.Contains(err.Error(), `no node "no such node"`) {
		t.Error(err)
	}
	if _, err := s.Dial(t.Context(), strings.Repeat("x", 32)); err == nil {
		t.Error("a name of 32 bytes was taken")
	}
	if _, err := Dial(t.Context(), ClientConfig{Socket: "ibweave-absent"}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
	// A place is free again when a client closes, and when it was refused.
	var clients []*Client
	for range MaxClients {
		c := short.Must(s.Dial(t.Context(), twin.Fabric.Node(3).Description))(t)
		clients = append(clients, c)
	}
	if _, err := Dial(t.Context(), ClientConfig{Socket: s.Socket(), Node: twin.NodeID(0)}); !errors.Is(err, errControl) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Dial(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { clients[0].Close() })
	c := short.Must(s.Dial(t.Context(), ""))(t)
	// When ibsim goes, everybody is told at once.
	closed := make(chan error, 1)
	time.AfterFunc(50*time.Millisecond, func() { closed <- s.Close() })
	var p mad.Packet
	if c.Receive(&p) == nil {
		t.Error("no error")
	}
	for _, c := range append(clients[1:], c) {
		short.Check(t, c.Close())
	}
	short.Check(t, <-closed)
}

// OpenSM's answers through libumad2sim.so say that they are one packet of several, and are
// as long as the header says: a socket in ibsim's place sends one.
func TestClientShortAnswer(t *testing.T) {
	c, server := fakeServer(t)
	a := mad.Adm{Header: mad.Header{BaseVersion: 1, Class: mad.SubnAdm, ClassVersion: 2, Method: mad.GetTable, TransactionID: 6}}
	short.Check(t, c.Send(&mad.Packet{LID: 7, QP: 1, Timeout: 10 * time.Second, Data: a.Append(nil)}))
	got := server.read()
	if binary.BigEndian.Uint16(got[0:]) != 7 || binary.BigEndian.Uint32(got[8:]) != 1 || binary.BigEndian.Uint32(got[12:]) != 1 || binary.BigEndian.Uint64(got[24:]) != 256 {
		t.Errorf("request %x", got[:simReqHead])
	}
	a.Method = mad.GetTableResp
	answer := a.Append(nil)
	answer[mad.HeaderSize+2] = 1 // RMPP is active
	server.write(answer, 112)
	if p := receive(t, c); len(p.Data) != 112 || p.TimedOut {
		t.Errorf("%d bytes", len(p.Data))
	}
}

// fake is a socket in ibsim's place.
type fake struct {
	t    *testing.T
	conn *net.UnixConn
	to   *net.UnixAddr
}

func fakeServer(t *testing.T) (*Client, *fake) {
	t.Helper()
	name := "ibweave-fake-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(rand.Int())
	ctl := short.Must(net.ListenUnixgram("unixgram", unixAddress(name, "ctl")))(t)
	out := short.Must(net.ListenUnixgram("unixgram", unixAddress(name, "out3")))(t)
	t.Cleanup(func() {
		ctl.Close()
		out.Close()
	})
	number := make(chan uint32, 1)
	go func() {
		b := make([]byte, simCtlSize)
		for {
			n, from, err := ctl.ReadFromUnix(b)
			if err != nil || n != len(b) {
				return
			}
			if binary.NativeEndian.Uint32(b[8:]) == simCtlConnect {
				number <- binary.NativeEndian.Uint32(b[16:])
				binary.NativeEndian.PutUint32(b[16:], 3)
			}
			// Go takes the zero at the end of the name for its end.
			ctl.WriteToUnix(b, &net.UnixAddr{Net: from.Net, Name: from.Name + "\x00"})
		}
	}()
	c := short.Must(Dial(t.Context(), ClientConfig{Socket: name}))(t)
	t.Cleanup(func() {
		short.Check(t, c.Close())
	})
	return c, &fake{t: t, conn: out, to: unixAddress(name, "in"+strconv.FormatUint(uint64(<-number), 10))}
}

func (f *fake) read() []byte {
	f.t.Helper()
	b := make([]byte, simReqSize)
	f.conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if n, err := f.conn.Read(b); err != nil || n != len(b) {
		f.t.Fatalf("%d bytes, %v", n, err)
	}
	return b
}

func (f *fake) write(m []byte, length uint64) {
	f.t.Helper()
	b := make([]byte, simReqSize)
	network16(b[4:], 7)
	binary.BigEndian.PutUint64(b[24:], length)
	// ibsim puts the number of the client into the upper 16 bits.
	copy(b[simReqHead:], m[:mad.Size])
	mad.SetTransactionID(b[simReqHead:], 3<<48|mad.TransactionID(m))
	short.Must(f.conn.WriteToUnix(b, f.to))(f.t)
}
