package umad

import (
	"os"

	"github.com/vishvananda/netlink"
)

func kernel() *system {
	return &system{sys: os.DirFS("/sys"), devices: rdmaDevices, addresses: addresses}
}

// rdmaDevices lists the devices that the kernel knows (RDMA_NLDEV_CMD_GET).
func rdmaDevices() ([]string, error) {
	links, err := netlink.RdmaLinkList()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.Attrs.Name
	}
	return names, nil
}

// addresses lists the network interfaces (RTM_GETLINK).
func addresses() (map[string][]byte, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	found := make(map[string][]byte, len(links))
	for _, l := range links {
		found[l.Attrs().Name] = l.Attrs().HardwareAddr
	}
	return found, nil
}
