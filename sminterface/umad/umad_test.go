package umad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// device imitates the kernel's umad device as drivers/infiniband/core/user_mad.c
// documents it: agents, headers, transaction IDs whose upper half is the
// agent's, timeouts that give the request's header back, and ENOSPC for answers
// that are longer than what is read into. What it sends goes to answer, or to a
// network behind it.
type device struct {
	pkey bool
	// answer gives what is read after a write: messages, header included.
	answer func(h header, m []byte) [][]byte

	mu     sync.Mutex
	cond   *sync.Cond
	agents map[uint32]agent
	last   uint32
	queue  [][]byte
	closed bool
}

func newDevice() *device {
	d := &device{agents: map[uint32]agent{}}
	d.cond = sync.NewCond(&d.mu)
	return d
}

func (d *device) Ioctl(request uint32, arg []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fs.ErrClosed
	}
	// The numbers are those that a C program on amd64 prints.
	switch request {
	case 0x00001b03:
		d.pkey = true
	case 0xc0281b04:
		if binary.NativeEndian.Uint32(arg[12:]) != 0 {
			return syscall.EINVAL
		}
		return d.register(arg, agent{class: arg[8], version: arg[9], rmpp: arg[36], qpn: uint8(binary.NativeEndian.Uint32(arg[4:]))})
	case 0x40041b02:
		id := binary.NativeEndian.Uint32(arg)
		if _, ok := d.agents[id]; !ok {
			return syscall.EINVAL
		}
		delete(d.agents, id)
	default:
		return syscall.ENOTTY
	}
	return nil
}

func (d *device) register(arg []byte, a agent) error {
	if !d.pkey || a.qpn > 1 || (a.qpn == 0) != (a.class&0x7f == 1) {
		return syscall.EINVAL
	}
	d.last++
	d.agents[d.last+6] = a
	binary.NativeEndian.PutUint32(arg, d.last+6)
	return nil
}

func (d *device) Write(b []byte) (int, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return 0, fs.ErrClosed
	}
	var h header
	h.unmarshal(b)
	a, ok := d.agents[h.agent]
	if !ok || len(b) < HeaderSize+36 || a.class != b[HeaderSize+1] {
		d.mu.Unlock()
		return 0, syscall.EINVAL
	}
	d.mu.Unlock()
	m := slices.Clone(b[HeaderSize:])
	mad.SetTransactionID(m, uint64(h.agent)<<40|mad.TransactionID(m)&0xffffffff)
	for _, r := range d.answer(h, m) {
		d.push(r)
	}
	return len(b), nil
}

func (d *device) push(m []byte) {
	d.mu.Lock()
	d.queue = append(d.queue, m)
	d.mu.Unlock()
	d.cond.Signal()
}

func (d *device) Read(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) == 0 && !d.closed {
		d.cond.Wait()
	}
	if d.closed {
		return 0, fs.ErrClosed
	}
	m := d.queue[0]
	binary.NativeEndian.PutUint32(m[16:], uint32(len(m)))
	n := copy(b, m)
	if n < len(m) {
		return 0, syscall.ENOSPC
	}
	d.queue = d.queue[1:]
	return n, nil
}

func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fs.ErrClosed
	}
	if len(d.agents) > 0 {
		return fmt.Errorf("%d agents left", len(d.agents))
	}
	d.closed = true
	d.cond.Broadcast()
	return nil
}

// message puts a header before a MAD.
func message(h header, m []byte) []byte {
	b := make([]byte, HeaderSize+len(m))
	h.marshal(b)
	copy(b[HeaderSize:], m)
	return b
}

func TestPort(t *testing.T) {
	d := newDevice()
	d.answer = func(h header, m []byte) [][]byte {
		if h.timeoutMS != 1500 || h.retries != 2 || h.lid != 0xffff || h.qpn != 0 || h.qkey != 0 {
			t.Errorf("header %+v", h)
		}
		if m[23] == 9 { // no answer: the kernel gives the header back
			h.status = 110
			return [][]byte{message(h, m[:mad.HeaderSize])}
		}
		m[3] |= byte(mad.Response)
		m[4] |= 0x80
		m[64] = 42
		return [][]byte{message(header{agent: h.agent, lid: 3}, m)}
	}
	p := short.Must(New(d))(t)
	if len(d.agents) != 3 || !d.pkey {
		t.Errorf("agents %v", d.agents)
	}
	c := subnet.New(p, subnet.Options{Timeout: 1500*time.Millisecond - 1, Retries: 2})
	data, err := c.Get(t.Context(), subnet.Target{Route: []fabric.PortNum{1, 2}}, mad.AttrNodeDescription, 0)
	if err != nil || data[0] != 42 {
		t.Errorf("%x, %v", data, err)
	}
	_, err = c.Get(t.Context(), subnet.Target{Route: []fabric.PortNum{1, 2}}, mad.AttrPortInfo, 9)
	if !errors.Is(err, subnet.ErrTimeout) || !strings.Contains(err.Error(), "Get(PortInfo, 0x9) to route 0,1,2") {
		t.Errorf("no answer: %v", err)
	}
	short.Check(t, c.Close())
	if !d.closed || len(d.agents) > 0 {
		t.Errorf("closed %v, agents %v", d.closed, d.agents)
	}
	if _, err := c.Get(t.Context(), subnet.Target{}, mad.AttrNodeInfo, 0); !errors.Is(err, subnet.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The kernel puts the packets of an answer together, and read has to ask twice.
func TestLongAnswer(t *testing.T) {
	d := newDevice()
	const records = 1000
	d.answer = func(h header, m []byte) [][]byte {
		if h.lid != 7 || h.qpn != 1 || h.qkey != 0x80010000 || h.sl != 3 {
			t.Errorf("header %+v", h)
		}
		var a mad.Adm
		short.Check(t, a.Unmarshal(m))
		a.Method |= mad.Response
		a.AttributeOffset = 7
		a.Data = nil
		for i := range records {
			a.Data = append((&mad.MCMemberRecord{MLID: fabric.LID(0xc000 + i)}).Append(a.Data), 0, 0, 0, 0)
		}
		return [][]byte{message(header{agent: h.agent, lid: h.lid, qpn: 1}, a.Append(nil))}
	}
	p := short.Must(New(d))(t)
	c := subnet.New(p, subnet.Options{})
	defer c.Close()
	for range 2 {
		list := short.Must(c.Members(t.Context(), subnet.Manager{LID: 7, SL: 3}, mad.MCMemberRecord{}, 0, 1))(t)
		short.MustEqual(t, len(list), records)
		for i, r := range list {
			short.MustEqual(t, int(r.MLID), 0xc000+i, "record", i, r)
		}
	}
}

// A whole sweep goes through the device: behind it is the real ibsim.
func TestThroughIbsim(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
	s, _ := ibsimtest.Start(t, f)
	conn := short.Must(s.Dial(t.Context(), ""))(t)
	d := newDevice()
	var mu sync.Mutex
	ids := map[uint32]header{} // by transaction ID
	d.answer = func(h header, m []byte) [][]byte {
		mu.Lock()
		ids[uint32(mad.TransactionID(m))] = h
		mu.Unlock()
		err := conn.Send(&mad.Packet{LID: fabric.LID(h.lid), QP: h.qpn, Timeout: time.Duration(h.timeoutMS) * time.Millisecond, Retries: int(h.retries), Data: m})
		if err != nil {
			t.Error(err)
		}
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var p mad.Packet
		for conn.Receive(&p) == nil {
			mu.Lock()
			h := ids[uint32(mad.TransactionID(p.Data))]
			mu.Unlock()
			m := slices.Clone(p.Data)
			mad.SetTransactionID(m, uint64(h.agent)<<40|mad.TransactionID(m)&0xffffffff)
			d.push(message(header{agent: h.agent, lid: uint16(p.LID), qpn: p.QP}, m))
		}
	}()
	port := short.Must(New(d))(t)
	c := subnet.New(port, subnet.Options{Timeout: 10 * time.Second})
	got := short.Must(c.Discover(t.Context()))(t)
	if g := got.Fabric; g.NumSwitches() != 16 || g.NumNodes() != 32 || g.NumLinks() != 40 || g.MaxLID() != 32 || len(got.Problems) > 0 {
		t.Errorf("%d switches of %d nodes, %d cables, LIDs to %d; %v", g.NumSwitches(), g.NumNodes(), g.NumLinks(), g.MaxLID(), got.Problems)
	}
	short.Check(t, errors.Join(c.Close(), conn.Close()))
	<-ended
}

func TestNewFails(t *testing.T) {
	d := newDevice()
	d.agents[9] = agent{} // so that Close would complain
	broken := &refusing{device: d, after: 3}
	if _, err := New(broken); !errors.Is(err, syscall.EPERM) || len(d.agents) != 1 {
		t.Errorf("%v, agents %v", err, d.agents)
	}
	for _, m := range []*mad.Packet{{Data: make([]byte, 255)}, {Data: make([]byte, 256)}} {
		p := short.Must(New(newDevice()))(t)
		if err := p.Send(m); err == nil {
			t.Errorf("a MAD of %d bytes of class 0 was sent", len(m.Data))
		}
		short.Check(t, p.Close())
	}
}

// refusing refuses an ioctl after some.
type refusing struct {
	*device
	after int
}

func (r *refusing) Ioctl(request uint32, arg []byte) error {
	if r.after--; r.after == 0 {
		return syscall.EPERM
	}
	return r.device.Ioctl(request, arg)
}

func sysfs() fstest.MapFS {
	m := fstest.MapFS{}
	put := func(name, text string) { m["class/"+name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	for i, dev := range []string{"mlx5_1", "mlx5_0"} {
		for port := 1; port <= 2; port++ {
			dir := fmt.Sprintf("infiniband/%s/ports/%d/", dev, port)
			put(dir+"lid", fmt.Sprintf("%#x", 16*i+port))
			put(dir+"lid_mask_count", "1")
			put(dir+"sm_lid", "0x3")
			put(dir+"state", map[int]string{1: "1: DOWN", 2: "4: ACTIVE"}[port])
			put(dir+"rate", "100 Gb/sec (4X EDR)")
			put(dir+"link_layer", "InfiniBand")
			put(dir+"gids/0", fmt.Sprintf("fe80:0000:0000:0000:0002:c903:00a1:%02x%02x", i, port))
			put(fmt.Sprintf("infiniband_mad/umad%d/ibdev", 2*i+port), dev)
			put(fmt.Sprintf("infiniband_mad/umad%d/port", 2*i+port), fmt.Sprint(port))
		}
	}
	put("infiniband/roce_0/ports/1/link_layer", "Ethernet")
	put("infiniband/roce_0/ports/1/state", "4: ACTIVE")
	put("infiniband/mlx5_1/ports/2/gid_attrs/ndevs/1", "ib7")
	for _, gid := range []string{"0", "1"} {
		put("infiniband/roce_0/ports/1/gid_attrs/ndevs/"+gid, "eth0")
	}
	put("infiniband/roce_0/ports/1/gid_attrs/ndevs/2", "")
	const ofMlx50Port2 = "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:a1:01:02"
	for name, address := range map[string]string{
		"ib0": ofMlx50Port2, "ib0.8001": ofMlx50Port2, "ib8": "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:a1:99:99",
		"ib9": "80:00:02:08:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00", "eth0": "01:02:03:04:05:06", "br0": "01:02:03:04:05:06", "lo": "00:00:00:00:00:00",
	} {
		put("net/"+name+"/address", address)
	}
	put("net/bonding_masters", "")
	put("infiniband_mad/issm0/ibdev", "mlx5_0")
	put("infiniband_mad/abi_version", "5")
	return m
}

func TestList(t *testing.T) {
	s := system{sysfs()}
	list := short.Must(s.list())(t)
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprintf("%v %v %d %d %d %s %q %s %v", p, p.GUID, p.LID, p.LMC, p.SMLID, p.State, p.Umad, p.LinkLayer, p.Netdevs))
	}
	want := []string{
		`mlx5_0:1 0x0002c90300a10101 17 1 3 DOWN "umad3" InfiniBand []`,
		`mlx5_0:2 0x0002c90300a10102 18 1 3 ACTIVE "umad4" InfiniBand [ib0 ib0.8001]`,
		`mlx5_1:1 0x0002c90300a10001 1 1 3 DOWN "umad1" InfiniBand []`,
		`mlx5_1:2 0x0002c90300a10002 2 1 3 ACTIVE "umad2" InfiniBand [ib7]`,
		`roce_0:1 0x0000000000000000 0 0 0 ACTIVE "" Ethernet [eth0]`,
	}
	short.EqualList(t, got, want)
	for name, port := range map[string]string{
		"mlx5_0": "mlx5_0:2", "mlx5_1:1": "mlx5_1:1", "0x2c90300a10001": "mlx5_1:1", "ib0": "mlx5_0:2", "ib0.8001": "mlx5_0:2", "ib7": "mlx5_1:2",
		"mlx5_0:3": "", "roce_0": "", "eth0": "", "0x0": "", "": "", "mlx5_0:": "", "mlx5_0:01": "",
	} {
		p, err := Select(list, name)
		if port == "" {
			short.Contains(t, fmt.Sprint(err), "network interface of mlx5_0:1, ", name, "is", p)
		} else if err != nil || p.String() != port {
			t.Errorf("%q is %v, %v, want %s", name, p, err, port)
		}
	}
	if list, err := (system{fstest.MapFS{}}).list(); !errors.Is(err, ErrNoDevices) || list != nil {
		t.Errorf("without devices: %v, %v", list, err)
	}
	bad := sysfs()
	bad["class/infiniband/mlx5_0/ports/1/lid"] = &fstest.MapFile{Data: []byte("0x10000\n")}
	short.Equal(t, short.Must((system{bad}).list())(t)[0].LID, 0, "a LID of 17 bits")
}

// What is on this machine can be listed, whatever it is.
func TestHere(t *testing.T) {
	list, err := List()
	if err != nil && !errors.Is(err, ErrNoDevices) || (err == nil) != (len(list) > 0) {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Open(PortInfo{Device: "none_0", Number: 1}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(PortInfo{Device: "none_0", Number: 1, Umad: "umad-of-absent"}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "ib_umad") {
		t.Error(err)
	}
}
