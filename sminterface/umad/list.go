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
	"github.com/ibweave/ibweave/internal/text"
)

// PortInfo is a port of this machine.
type PortInfo struct {
	Device    string         `json:"device"` // of the kernel: mlx5_0
	Number    fabric.PortNum `json:"port"`
	GUID      fabric.GUID    `json:"port_guid"` // of the port, 0 when not known
	LID       fabric.LID     `json:"lid"`
	LMC       uint8          `json:"lmc"`
	SMLID     fabric.LID     `json:"sm_lid"`
	State     string         `json:"state"`      // ACTIVE
	LinkLayer string         `json:"link_layer"` // InfiniBand or Ethernet
	Rate      string         `json:"rate"`       // 100 Gb/sec (4X EDR)
	Umad      string         `json:"umad"`       // umad0; "" if there is none
	// Netdevs are the network interfaces of the port, sorted:
	// IPoIB's, or Ethernet's if that is the link layer.
	Netdevs []string `json:"netdevs"`
}

// String returns a name like mlx5_0:1.
func (p PortInfo) String() string { return p.Device + ":" + strconv.Itoa(int(p.Number)) }

// usable returns true if the port can do subnet management.
func (p PortInfo) usable() bool { return p.LinkLayer == "InfiniBand" && p.Umad != "" }

// ErrNoDevices means that the machine has no RDMA device.
var ErrNoDevices = errors.New("this machine has no RDMA device: the kernel lists none in /sys/class/infiniband")

// system is /sys.
type system struct{ fs.FS }

// list returns the result of List.
func (s system) list() ([]PortInfo, error) {
	devices, err := fs.ReadDir(s, "class/infiniband")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	umads, err := s.umads()
	if err != nil {
		return nil, err
	}
	var list []PortInfo
	for _, device := range devices {
		entries, err := fs.ReadDir(s, "class/infiniband/"+device.Name()+"/ports")
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was just removed
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			number, err := strconv.ParseUint(e.Name(), 10, 8)
			if err != nil {
				continue
			}
			p := s.port(device.Name(), fabric.PortNum(number))
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

// attribute reads a line of /sys, "" if there is none.
func (s system) attribute(name string) string {
	b, err := fs.ReadFile(s, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a number of /sys, in any base; 0 if there is none.
func (s system) number(name string, bits int) uint64 {
	n, err := strconv.ParseUint(s.attribute(name), 0, bits)
	if err != nil {
		return 0
	}
	return n
}

func (s system) port(device string, number fabric.PortNum) PortInfo {
	p := PortInfo{Device: device, Number: number}
	dir := fmt.Sprintf("class/infiniband/%s/ports/%d/", device, number)
	// like 4: ACTIVE
	_, p.State, _ = strings.Cut(s.attribute(dir+"state"), ": ")
	p.Rate = s.attribute(dir + "rate")
	if p.LinkLayer = s.attribute(dir + "link_layer"); p.LinkLayer == "" || p.LinkLayer == "IB" {
		p.LinkLayer = "InfiniBand" // as libibumad takes it
	}
	p.LID, p.SMLID = fabric.LID(s.number(dir+"lid", 16)), fabric.LID(s.number(dir+"sm_lid", 16))
	p.LMC = uint8(s.number(dir+"lid_mask_count", 3))
	// fe80:0000:0000:0000:0002:c903:00a1:b2c3: the port GUID is the lower half
	if gid := strings.Split(s.attribute(dir+"gids/0"), ":"); len(gid) == 8 {
		p.GUID, _ = fabric.ParseGUID(strings.Join(gid[4:], "")) // 0 if it is invalid
	}
	return p
}

// umads finds the umad device of each port, by names like mlx5_0:1.
func (s system) umads() (map[string]string, error) {
	entries, err := fs.ReadDir(s, "class/infiniband_mad")
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

// attach finds the network interfaces of ports: interfaces of the port's GIDs, and IPoIB
// interfaces whose hardware address ends with the port's GUID (RFC 4391, section 9.1.1).
func (s system) attach(list []PortInfo) {
	ipoib := make(map[fabric.GUID][]string)
	for _, name := range s.names("class/net") {
		if address := strings.Split(s.attribute("class/net/"+name+"/address"), ":"); len(address) == 20 {
			if guid, err := fabric.ParseGUID(strings.Join(address[12:], "")); err == nil && guid != 0 {
				ipoib[guid] = append(ipoib[guid], name)
			}
		}
	}
	for i := range list {
		p := &list[i]
		p.Netdevs = slices.Clone(ipoib[p.GUID])
		dir := fmt.Sprintf("class/infiniband/%s/ports/%d/gid_attrs/ndevs", p.Device, p.Number)
		for _, gid := range s.names(dir) {
			if name := s.attribute(dir + "/" + gid); name != "" {
				p.Netdevs = append(p.Netdevs, name)
			}
		}
		slices.Sort(p.Netdevs)
		p.Netdevs = slices.Compact(p.Netdevs)
	}
}

// names lists the entries of a folder of /sys, none if it cannot be read.
func (s system) names(dir string) (list []string) {
	entries, _ := fs.ReadDir(s, dir)
	return text.Each(entries, fs.DirEntry.Name)
}

// Select finds a port by mlx5_0:1, by mlx5_0 (its first
// active port, else its first), by port GUID, or by a
// network interface. The error lists the existing ports.
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
	names := text.Each(list, PortInfo.String)
	return PortInfo{}, fmt.Errorf("no InfiniBand port %q with a umad device: want DEVICE[:PORT], a port GUID or a network interface of %s", name, strings.Join(names, ", "))
}
