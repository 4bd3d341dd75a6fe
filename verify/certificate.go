package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/verify/bound"
)

// Certificate proves that tables have no credit loop. It numbers the channels that
// their traffic uses, so that the number increases along every dependency, which
// rules out cycles. Check verifies it in linear time, so its author need not be
// trusted.
//
// Its text is first a line
//
//	ibweave certificate 1 traffic unicast+management vls 1 channels 80 fabric sha256:<64 digits>
//
// then one for each channel, in ascending order: the GUID of the node that it
// leaves, the port, the VL and the number. vls is one more than the highest VL:
// the form is the same for one VL and several. The certificate is for the nodes
// and cables of one fabric. LIDs, tables, SL-to-VL tables, path SLs and
// multicast groups may change as long as the numbers increase along the
// dependencies.
type Certificate struct {
	// Management is true if the proof also covers packets to and from port 0 of
	// switches, not only those between CA and router ports.
	Management bool
	// Multicast is true if the proof also covers multicast packets.
	Multicast bool
	VLs       int               // one more than the highest VL
	Fabric    [sha256.Size]byte // FabricHash of the nodes and cables
	Channels  []NumberedChannel // by GUID, port and VL
}

// FabricHash identifies nodes and cables. It is the SHA-256 of, for each node
// in the order of NodeIDs, its type, number of ports and GUID, and for each
// of its ports the PortID at the other end, big-endian. Names, LIDs and link
// speeds do not matter.
func FabricHash(f *fabric.Fabric) [sha256.Size]byte {
	b := make([]byte, 0, 16*f.NumNodes()+4*f.NumPorts())
	for n := range f.NumNodes() {
		node := f.Node(fabric.NodeID(n))
		b = append(b, byte(node.Type), byte(node.NumPorts))
		b = binary.BigEndian.AppendUint64(b, uint64(node.GUID))
		for p := 1; p <= int(node.NumPorts); p++ {
			b = binary.BigEndian.AppendUint32(b, uint32(f.Peer(f.Port(fabric.NodeID(n), fabric.PortNum(p)))))
		}
	}
	return sha256.Sum256(b)
}

// Certificate returns a proof that there is no credit loop. It is nil if there is one, if
// multicast packets loop, or if switches do not copy independently, which numbers do not
// cover. It includes management traffic unless that adds a credit loop. The number of a
// channel is the length of the longest chain of dependencies that ends there: 0 for channels
// that leave CAs.
func (r *Result) Certificate() *Certificate {
	if r.proof == nil {
		return nil
	}
	g, f := r.proof.graph, r.proof.graph.f
	c := &Certificate{Management: r.proof.management, Multicast: r.proof.multicast, VLs: 1, Fabric: FabricHash(f), Channels: []NumberedChannel{}}
	for ch, level := range graph.Levels(g.count(), r.proof.order, g.Next()) {
		if g.used[ch] {
			port, vl := g.portVL(int32(ch))
			// CAs' channels into switches come first, with number 0.
			c.Channels = append(c.Channels, NumberedChannel{f.Node(f.Owner(port)).GUID, f.Num(port), vl, level + 1})
		}
	}
	c.Channels = append(c.Channels, r.proof.fromCAs...)
	for _, ch := range c.Channels {
		c.VLs = max(c.VLs, int(ch.VL)+1)
	}
	slices.SortFunc(c.Channels, NumberedChannel.Compare)
	return c
}

const (
	certificateMagic = "ibweave certificate 1"
	trafficUnicast   = "unicast"
	plusManagement   = "+management"
	plusMulticast    = "+multicast"
)

// Append appends the certificate's text to b.
func (c *Certificate) Append(b []byte) []byte {
	traffic := trafficUnicast
	if c.Management {
		traffic += plusManagement
	}
	if c.Multicast {
		traffic += plusMulticast
	}
	b = slices.Grow(b, 128+32*len(c.Channels))
	b = fmt.Appendf(b, "%s traffic %s vls %d channels %d fabric %s%x\n", certificateMagic, traffic, c.VLs, len(c.Channels), bound.HashPrefix, c.Fabric)
	for _, ch := range c.Channels {
		b = append(ch.GUID.Append(b), ' ')
		b = append(strconv.AppendUint(b, uint64(ch.Port), 10), ' ')
		b = append(strconv.AppendUint(b, uint64(ch.VL), 10), ' ')
		b = append(strconv.AppendInt(b, int64(ch.Number), 10), '\n')
	}
	return b
}

// ReadCertificate reads a certificate. It accepts only what Append writes;
// the error is a *fabric.ParseError with the line.
func ReadCertificate(name string, data []byte) (*Certificate, error) {
	r := &bound.Lines{Rest: data}
	c, err := readCertificate(r)
	if err != nil {
		return nil, r.Fail(name, err)
	}
	return c, nil
}

func readCertificate(r *bound.Lines) (*Certificate, error) {
	if err := r.Next(fmt.Sprintf("a first line that begins with %q", certificateMagic)); err != nil {
		return nil, err
	}
	c, channels, err := parseCertificateHeader(r.Text)
	if err != nil {
		return nil, err
	}
	c.Channels = []NumberedChannel{}
	for len(c.Channels) < channels || len(r.Rest) > 0 {
		if err := r.Next(fmt.Sprintf("%d channels, as the first line says", channels)); err != nil {
			return nil, err
		}
		ch, err := parseNumberedChannel(r.Text)
		switch {
		case err != nil:
			return nil, err
		case int(ch.VL) >= c.VLs:
			return nil, fmt.Errorf("VL %d: want 0 to %d, as the first line says", ch.VL, c.VLs-1)
		case len(c.Channels) > 0 && c.Channels[len(c.Channels)-1].Compare(ch) >= 0:
			return nil, errors.New("channels must ascend by GUID, port and VL, each once")
		case len(c.Channels) == channels:
			return nil, fmt.Errorf("one channel more than the %d that the first line says", channels)
		}
		c.Channels = append(c.Channels, ch)
	}
	return c, nil
}

// parseCertificateHeader reads the first line.
func parseCertificateHeader(s string) (c *Certificate, channels int, err error) {
	rest, ok := strings.CutPrefix(s, certificateMagic+" ")
	if !ok {
		return nil, 0, fmt.Errorf("no certificate that can be read: want a first line that begins with %q", certificateMagic)
	}
	field := strings.Split(rest, " ")
	if len(field) != 8 || field[0] != "traffic" || field[2] != "vls" || field[4] != "channels" || field[6] != "fabric" {
		return nil, 0, fmt.Errorf("want %q", certificateMagic+" traffic T vls V channels C fabric "+bound.HashPrefix+"H")
	}
	c = &Certificate{}
	traffic, ok := strings.CutPrefix(field[1], trafficUnicast)
	if ok {
		traffic, c.Management = strings.CutPrefix(traffic, plusManagement)
		traffic, c.Multicast = strings.CutPrefix(traffic, plusMulticast)
	}
	if !ok || traffic != "" {
		return nil, 0, fmt.Errorf("traffic %q: want %s, and %s or %s or both after it", field[1], trafficUnicast, plusManagement, plusMulticast)
	}
	vls, err := bound.ParseDecimal(field[3], 1, 15)
	if err != nil {
		return nil, 0, fmt.Errorf("vls %w", err)
	}
	n, err := bound.ParseDecimal(field[5], 0, math.MaxInt32)
	if err != nil {
		return nil, 0, fmt.Errorf("channels %w", err)
	}
	c.VLs = int(vls)
	c.Fabric, err = bound.ParseHash("fabric", field[7])
	return c, int(n), err
}

// parseNumberedChannel reads one line of a channel.
func parseNumberedChannel(text string) (ch NumberedChannel, err error) {
	field := strings.Split(text, " ")
	if len(field) != 4 {
		return ch, errors.New("want a GUID, a port, a VL and a number")
	}
	if ch.GUID, err = bound.ParseGUID(field[0]); err != nil {
		return ch, err
	}
	port, err := bound.ParseDecimal(field[1], 1, int64(fabric.MaxPortNum))
	if err != nil {
		return ch, fmt.Errorf("port %w", err)
	}
	vl, err := bound.ParseDecimal(field[2], 0, 14)
	if err != nil {
		return ch, fmt.Errorf("VL %w", err)
	}
	number, err := bound.ParseDecimal(field[3], 0, math.MaxInt32)
	if err != nil {
		return ch, fmt.Errorf("number %w", err)
	}
	ch.Port, ch.VL, ch.Number = fabric.PortNum(port), fabric.VL(vl), int32(number)
	return ch, nil
}
