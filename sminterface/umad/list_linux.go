package umad

import (
	"os"

	"github.com/Mellanox/rdmamap"
	"github.com/vishvananda/netlink"
)

func kernel() *system {
	return &system{sys: os.DirFS("/sys"), devices: rdmaDevices, netdevs: netdevs, deviceOf: rdmamap.GetRdmaDeviceForNetdevice}
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

// netdevs lists the network interfaces (RTM_GETLINK).
func netdevs() ([]netdev, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	list := make([]netdev, len(links))
	for i, l := range links {
		at := l.Attrs()
		kind := l.Type() // physical ones have none, except IPoIB's
		list[i] = netdev{name: at.Name, address: at.HardwareAddr, physical: kind == "ipoib" || kind == "device" && at.EncapType != "loopback"}
	}
	return list, nil
}
