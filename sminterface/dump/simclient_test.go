package dump

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// simClient sends MADs to ibsim, as a program does that is attached to a node.
// What goes over its two sockets is in ibsim's include/ibsim.h.
type simClient struct {
	t         *testing.T
	ctl, data *net.UnixConn
	out       *net.UnixAddr // where requests go
	id        uint32
	tid       uint64
}

var simClients atomic.Uint32

// attach connects a client with a switch.
func (s *simulator) attach(f *fabric.Fabric, sw fabric.NodeID) *simClient {
	s.t.Helper()
	var socket string
	for _, e := range s.Command(s.t.Context(), "true").Env {
		if name, ok := strings.CutPrefix(e, "IBSIM_SOCKNAME="); ok {
			socket = name
		}
	}
	// The names end with the zero byte of a C string.
	address := func(format string, number uint32) *net.UnixAddr {
		return &net.UnixAddr{Net: "unixgram", Name: "@" + socket + ":" + fmt.Sprintf(format, number) + "\x00"}
	}
	number := 1<<30 + simClients.Add(1) // libumad2sim.so takes its process id
	c := &simClient{t: s.t}
	var err error
	if c.ctl, err = net.DialUnix("unixgram", address("ctl%d", number), address("ctl%.0d", 0)); err != nil {
		s.t.Fatal(err)
	}
	// ibsim connects to this one when it is asked to take the client.
	if c.data, err = net.ListenUnixgram("unixgram", address("in%d", number)); err != nil {
		s.t.Fatal(err)
	}
	info := make([]byte, 44)
	binary.LittleEndian.PutUint32(info, number)
	copy(info[12:], fmt.Sprintf("S-%016x", uint64(f.Node(sw).GUID)))
	c.id = binary.LittleEndian.Uint32(c.control(1, info))
	c.out = address("out%d", c.id)
	return c
}

// detach ends the connection.
func (c *simClient) detach() {
	c.t.Helper()
	c.control(2, nil)
	if err := c.ctl.Close(); err != nil {
		c.t.Error(err)
	}
	if err := c.data.Close(); err != nil {
		c.t.Error(err)
	}
}

// control sends a sim_ctl and returns the data of the answer.
func (c *simClient) control(kind uint32, data []byte) []byte {
	c.t.Helper()
	b := make([]byte, 16+64)
	binary.LittleEndian.PutUint32(b, 0xdeadbeef)
	binary.LittleEndian.PutUint32(b[4:], c.id)
	binary.LittleEndian.PutUint32(b[8:], kind)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(data)))
	copy(b[16:], data)
	if _, err := c.ctl.Write(b); err != nil {
		c.t.Fatal(err)
	}
	c.receive(c.ctl, b)
	if got := binary.LittleEndian.Uint32(b[8:]); got != kind {
		c.t.Fatalf("ibsim answers %d to a request of type %d", got, kind)
	}
	return b[16:]
}

func (c *simClient) receive(conn *net.UnixConn, b []byte) {
	c.t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	if n, err := conn.Read(b); err != nil || n != len(b) {
		c.t.Fatalf("%d bytes of %d, %v", n, len(b), err)
	}
}

// set sends a SubnSet to the switch itself, and wants it to be taken.
func (c *simClient) set(attribute uint16, modifier uint32, data []byte) {
	c.t.Helper()
	const head = 32 // of a sim_request
	b := make([]byte, head+256)
	binary.BigEndian.PutUint16(b, 0xffff)     // DLID: permissive
	binary.BigEndian.PutUint16(b[4:], 0xffff) // SLID
	binary.BigEndian.PutUint64(b[24:], 256)
	mad := b[head:]
	mad[0], mad[1], mad[2], mad[3] = 1, 0x81, 1, 2 // directed route, Set
	c.tid++
	binary.BigEndian.PutUint64(mad[8:], c.tid)
	binary.BigEndian.PutUint16(mad[16:], attribute)
	binary.BigEndian.PutUint32(mad[20:], modifier)
	copy(mad[32:], "\xff\xff\xff\xff") // no part of the way by LID
	copy(mad[64:128], data)
	if _, err := c.data.WriteToUnix(b, c.out); err != nil {
		c.t.Fatal(err)
	}
	answer := make([]byte, len(b))
	c.receive(c.data, answer)
	if mad := answer[head:]; mad[3] != 0x81 || binary.BigEndian.Uint16(mad[4:])&0x7fff != 0 || binary.BigEndian.Uint64(mad[8:]) != c.tid {
		c.t.Fatalf("Set(%#x, %#x) is answered by %x", attribute, modifier, mad[:32])
	}
}

// setMFTs writes multicast tables into the switches, which must not have any.
func (s *simulator) setMFTs(t *mft.Tables) {
	s.t.Helper()
	const attribute = 0x1b // MulticastForwardingTable
	f := t.Fabric()
	for sw := range fabric.NodeID(f.NumSwitches()) {
		c := s.attach(f, sw)
		blocks := make(map[uint32][]byte)
		for _, l := range t.MLIDs() {
			for _, p := range t.Mask(sw, l) {
				n := f.Num(p)
				modifier := uint32(n/16)<<28 | uint32(l-mft.MinMLID)/32
				if blocks[modifier] == nil {
					blocks[modifier] = make([]byte, 64)
				}
				mask := blocks[modifier][uint32(l-mft.MinMLID)%32*2:]
				binary.BigEndian.PutUint16(mask, binary.BigEndian.Uint16(mask)|1<<(n%16))
			}
		}
		for modifier, data := range blocks {
			c.set(attribute, modifier, data)
		}
		c.detach()
	}
}
