package dump

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
	id        uint32
	tid       uint32
}

var simClients atomic.Uint32

// attach connects a client with a node.
func (s *simulator) attach(node fabric.NodeID, f *fabric.Fabric) *simClient {
	s.t.Helper()
	c := &simClient{t: s.t}
	var socket string
	for _, e := range s.Command(s.t.Context(), "true").Env {
		if name, ok := strings.CutPrefix(e, "IBSIM_SOCKNAME="); ok {
			socket = name
		}
	}
	number := 1<<30 + simClients.Add(1) // libumad2sim.so takes its process id
	dial := func(local, remote string) *net.UnixConn {
		// The names end with the zero byte of a C string.
		address := func(name string) *net.UnixAddr {
			return &net.UnixAddr{Net: "unixgram", Name: "@" + socket + ":" + name + "\x00"}
		}
		conn, err := net.DialUnix("unixgram", address(fmt.Sprintf("%s%d", local, number)), address(remote))
		if err != nil {
			s.t.Fatal(err)
		}
		return conn
	}
	// ibsim sends to the second socket as soon as it is asked to connect.
	c.ctl = dial("ctl", "ctl")
	info := make([]byte, 64)
	binary.LittleEndian.PutUint32(info, number)
	kind := "H"
	if f.IsSwitch(node) {
		kind = "S"
	}
	copy(info[12:], fmt.Sprintf("%s-%016x", kind, uint64(f.Node(node).GUID)))
	c.data = c.connect(info, func(id uint32) *net.UnixConn { return dial("in", fmt.Sprintf("out%d", id)) })
	return c
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
		c.t.Fatalf("%d bytes, %v", n, err)
	}
}
