package umad

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// PortInfo is a port of this machine.
type PortInfo struct {
	Device    string // of the kernel: mlx5_0
	Number    fabric.PortNum
	GUID      fabric.GUID // of the port, 0 when not known
	LID       fabric.LID
	LMC       uint8
	SMLID     fabric.LID
	State     string // ACTIVE
	LinkLayer string // InfiniBand or Ethernet
	Rate      string // 100 Gb/sec (4X EDR)
	Umad      string // umad0, "" without
	// Netdevs are the network interfaces of the port, sorted: IPoIB's, or Ethernet's
	// where that is the link layer.
	Netdevs []string
}

// String is mlx5_0:1.
func (p PortInfo) String() string { return p.Device + ":" + strconv.Itoa(int(p.Number)) }

// usable says whether subnet management is spoken there.
func (p PortInfo) usable() bool { return p.LinkLayer == "InfiniBand" && p.Umad != "" }

// ErrNoDevices says that the machine has no RDMA device.
var ErrNoDevices = errors.New("this machine has no RDMA device: the kernel lists none in /sys/class/infiniband")

// system is what List asks: /sys, and the kernel by netlink.
type system struct {
	sys fs.FS
	// devices lists the RDMA devices; an error leaves that to /sys.
	devices func() ([]string, error)
	// netdevs lists the network interfaces.
	netdevs func() ([]netdev, error)
	// deviceOf gives the RDMA device of a network interface, "" or an error for none.
	deviceOf func(netdev string) (string, error)
}

// netdev is a network interface of the kernel's.
type netdev struct {
	name     string
	address  []byte // of hardware: 20 bytes for IPoIB (RFC 4391, section 9.1.1)
	physical bool   // not one that software makes, such as a bridge
}

// List lists the ports of the machine's RDMA devices, by device and number, as
// the kernel tells by netlink and in /sys. Errors: ErrNoDevices, and what
// reading /sys gives.
func List() ([]PortInfo, error) { return kernel().list() }

func (s *system) list() ([]PortInfo, error) {
	devices, err := s.devices()
	if err != nil || len(devices) == 0 {
		// Older kernels, and sandboxes, have no netlink for RDMA.
		entries, err := fs.ReadDir(s.sys, "class/infiniband")
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
			return nil, ErrNoDevices
		}
		if err != nil {
			return nil, err
		}
		devices = nil
		for _, e := range entries {
			devices = append(devices, e.Name())
		}
	}
	umads, err := s.umads()
	if err != nil {
		return nil, err
	}
	var list []PortInfo
	for _, device := range devices {
		entries, err := fs.ReadDir(s.sys, "class/infiniband/"+device+"/ports")
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just gone
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			number, err := strconv.ParseUint(e.Name(), 10, 8)
			if err != nil {
				continue
			}
			p, err := s.port(device, fabric.PortNum(number))
			if err != nil {
				return nil, err
			}
			p.Umad = umads[p.String()]
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, ErrNoDevices
	}
	s.attach(list)
	slices.SortFunc(list, func(a, b PortInfo) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), cmp.Compare(a.Number, b.Number))
	})
	return list, nil
}

// attribute reads a line of /sys; what is not there is "".
func (s *system) attribute(name string) string {
	b, err := fs.ReadFile(s.sys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a number of /sys, in any base, "" being 0.
func (s *system) number(name string, bits int) (uint64, error) {
	text := s.attribute(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return 0, fmt.Errorf("/sys/%s: %q, want a number of at most %d bits", name, text, bits)
	}
	return n, nil
}

func (s *system) port(device string, number fabric.PortNum) (PortInfo, error) {
	p := PortInfo{Device: device, Number: number}
	dir := fmt.Sprintf("class/infiniband/%s/ports/%d/", device, number)
	// 4: ACTIVE
	_, p.State, _ = strings.Cut(s.attribute(dir+"state"), ": ")
	p.Rate = s.attribute(dir + "rate")
	if p.LinkLayer = s.attribute(dir + "link_layer"); p.LinkLayer == "" || p.LinkLayer == "IB" {
		p.LinkLayer = "InfiniBand" // as libibumad takes it
	}
	lid, err1 := s.number(dir+"lid", 16)
	lmc, err2 := s.number(dir+"lid_mask_count", 3)
	sm, err3 := s.number(dir+"sm_lid", 16)
	if err := errors.Join(err1, err2, err3); err != nil {
		return p, err
	}
	p.LID, p.LMC, p.SMLID = fabric.LID(lid), uint8(lmc), fabric.LID(sm)
	// fe80:0000:0000:0000:0002:c903:00a1:b2c3: the port GUID is the lower half
	if gid := strings.Split(s.attribute(dir+"gids/0"), ":"); len(gid) == 8 {
		guid, err := fabric.ParseGUID(strings.Join(gid[4:], ""))
		if err != nil {
			return p, fmt.Errorf("/sys/%sgids/0: %w", dir, err)
		}
		p.GUID = guid
	}
	return p, nil
}

// umads finds the umad device of each port, by mlx5_0:1.
func (s *system) umads() (map[string]string, error) {
	entries, err := fs.ReadDir(s.sys, "class/infiniband_mad")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := make(map[string]string)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "umad") {
			continue
		}
		dir := "class/infiniband_mad/" + e.Name() + "/"
		found[s.attribute(dir+"ibdev")+":"+s.attribute(dir+"port")] = e.Name()
	}
	return found, nil
}

// attach finds the network interfaces of ports. The hardware address of an IPoIB
// interface ends with the GUID of its port. Of others, and where no port has that
// GUID, the kernel says the device, and which port of several is theirs.
func (s *system) attach(list []PortInfo) {
	netdevs, err := s.netdevs()
	if err != nil {
		return // names are all that is lost
	}
	for _, d := range netdevs {
		if i := slices.IndexFunc(list, func(p PortInfo) bool { return p.GUID != 0 && d.ipoib() && p.GUID == d.guid() }); i >= 0 {
			list[i].Netdevs = append(list[i].Netdevs, d.name)
			continue
		}
		if !d.physical {
			continue
		}
		device, err := s.deviceOf(d.name)
		if err != nil || device == "" {
			continue
		}
		var ports []int
		for i, p := range list {
			if p.Device == device && (p.LinkLayer == "InfiniBand") == d.ipoib() {
				ports = append(ports, i)
			}
		}
		for _, i := range ports {
			if len(ports) == 1 || s.hasGIDsOf(list[i], d.name) {
				list[i].Netdevs = append(list[i].Netdevs, d.name)
			}
		}
	}
	for i := range list {
		slices.Sort(list[i].Netdevs)
	}
}

func (d *netdev) ipoib() bool { return len(d.address) == 20 }

// guid is the end of an IPoIB interface's address.
func (d *netdev) guid() (g fabric.GUID) {
	for _, b := range d.address[12:] {
		g = g<<8 | fabric.GUID(b)
	}
	return g
}

// hasGIDsOf says whether a port has GIDs for a network interface.
func (s *system) hasGIDsOf(p PortInfo, netdev string) bool {
	dir := fmt.Sprintf("class/infiniband/%s/ports/%d/gid_attrs/ndevs", p.Device, p.Number)
	entries, err := fs.ReadDir(s.sys, dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return s.attribute(dir+"/"+e.Name()) == netdev })
}

// NotFoundError says that no port has a name.
type NotFoundError struct {
	Name  string
	Ports []PortInfo // that there are
}

func (e *NotFoundError) Error() string {
	names := make([]string, len(e.Ports))
	for i, p := range e.Ports {
		names[i] = p.String()
	}
	return fmt.Sprintf("no InfiniBand port %q with a umad device: want DEVICE[:PORT], a port GUID or a network interface of %s", e.Name, strings.Join(names, ", "))
}

// Select finds a port by mlx5_0:1, by mlx5_0 (its first port that is active,
// else its first), by port GUID, or by a network interface. Errors: a
// *NotFoundError.
func Select(list []PortInfo, name string) (PortInfo, error) {
	device, number, numbered := strings.Cut(name, ":")
	best := -1
	for i, p := range list {
		if !p.usable() {
			continue
		}
		if p.Device == device {
			if numbered && strconv.Itoa(int(p.Number)) == number {
				return p, nil
			}
			if !numbered && (best < 0 || p.State == "ACTIVE" && list[best].State != "ACTIVE") {
				best = i
			}
		}
	}
	if best >= 0 {
		return list[best], nil
	}
	guid, err := fabric.ParseGUID(name)
	for _, p := range list {
		if p.usable() && (err == nil && guid != 0 && p.GUID == guid || slices.Contains(p.Netdevs, name)) {
			return p, nil
		}
	}
	return PortInfo{}, &NotFoundError{Name: name, Ports: list}
}
