package dump

import (
	"encoding/binary"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// setMFTs writes multicast tables into the switches, which must not have any.
func (s *simulator) setMFTs(t *mft.Tables) {
	s.t.Helper()
	conn := short.Must(s.Dial(s.t.Context(), ""))(s.t)
	c := subnet.New(conn, subnet.Options{Timeout: 20 * time.Second})
	defer func() {
		if err := c.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	d := short.Must(c.Discover(s.t.Context()))(s.t)
	f := t.Fabric()
	for sw := range fabric.NodeID(f.NumSwitches()) {
		blocks := make(map[uint32]*mad.MulticastForwardingTable)
		for _, l := range t.MLIDs() {
			for _, p := range t.Mask(sw, l) {
				n := f.Num(p)
				modifier := mad.MulticastModifier(int(l-mft.MinMLID)/mad.MLIDBlock, int(n)/mad.PortsPerMask)
				if blocks[modifier] == nil {
					blocks[modifier] = new(mad.MulticastForwardingTable)
				}
				blocks[modifier][int(l-mft.MinMLID)%mad.MLIDBlock] |= 1 << (n % mad.PortsPerMask)
			}
		}
		found, ok := d.Fabric.SwitchByGUID(f.Node(sw).GUID)
		if !ok {
			s.t.Fatalf("no switch %s", f.Node(sw).GUID)
		}
		to := subnet.Target{Route: d.Routes[found]}
		for modifier, masks := range blocks {
			var data mad.Data
			for i, mask := range masks {
				binary.BigEndian.PutUint16(data[2*i:], mask)
			}
			short.Must(c.SMP(s.t.Context(), to, mad.Set, mad.AttrMulticastForwardingTable, modifier, &data))(s.t)
		}
	}
}
