package topology

import (
	"bytes"

	"github.com/ibweave/ibweave/fabric"
)

// Form is one of the forms of topology text.
type Form uint8

// The forms. Stanzas have all that a Fabric holds. In the others but SubnetList the GUIDs of adapters and
// routers are those of their ports less the port number (see Parse), and there is no system
// GUID, vendor, device, LMC and kind of port 0.
const (
	NoForm Form = iota
	// Stanzas is what ibnetdiscover prints, and ibsim's short form.
	Stanzas
	// PortList is what ibnetdiscover -p prints.
	PortList
	// LinkInfo is what iblinkinfo prints, with or without -l. It has every port of a switch,
	// also those that are down, so that the number of ports is right. An adapter has the ports
	// with a cable. With -l a node with several ports under one GUID is a switch, and routers
	// are taken for adapters. Without -l, two nodes that have the same description, and ports
	// with the same number and LID, cannot be told apart: that is an error.
	LinkInfo
	// SubnetList is opensm-subnet.lst, and ibdiagnet's lst. It has GUIDs and vendors of nodes, and
	// neither nodes without a cable, LMC nor the kind of port 0. Links that are down are left out.
	SubnetList
	// UFMLinks are the links of UFM. They have neither LIDs nor speeds; a node has as many ports
	// as its highest one with a cable, and routers are taken for adapters.
	UFMLinks
	// NodeList is what ibswitches, ibhosts, ibrouters and ibnodes print: GUIDs and names, and
	// no cables. ParseNames reads it, and Parse says so.
	NodeList
)

// recognizeWithin is how far Recognize looks, in bytes, errors of the sweep apart: there
// may be thousands.
const recognizeWithin = 64 << 10

// Recognize tells the form of data, which may be only the beginning of a file, by the first
// line that only one form has.
func Recognize(data []byte) Form {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	return recognize(withLF(withoutEscapes(data[:min(len(data), 64*recognizeWithin)])), recognizeWithin)
}

// recognize is Recognize where lines end with LF, in the first bytes, as many as within says.
func recognize(data []byte, within int) Form {
	for left := within; len(data) > 0 && left > 0; {
		text, rest := cutLine(data)
		l := Line{Text: text[:min(len(text), left)]}
		l.SkipBlanks()
		if form := formOf(l); form != NoForm {
			return form
		}
		if l.Is('[') && isUFM(data[l.At:min(len(data), l.At+left)]) {
			return UFMLinks
		}
		if kindOfNoise(text) == fabric.ForeignLines {
			left -= len(text) + 1
		}
		data = rest
	}
	return NoForm
}

// isUFM says whether data, from a bracket on, is JSON with the names of UFM's links.
func isUFM(data []byte) bool {
	return isArray(data) && bytes.Contains(data, []byte(`"source_guid"`))
}

// formOf is the form that only one form has a line of, NoForm for any other line. Links of
// UFM are told by more than a line.
func formOf(l Line) Form {
	switch {
	case isListLine(l.Text, l.At):
		return PortList
	case isInfoLine(l):
		return LinkInfo
	case isNodeLine(l):
		return NodeList
	case isSubnetLine(l.Rest()):
		return SubnetList
	case bytes.HasPrefix(l.Rest(), []byte("# Topology file:")):
		return Stanzas
	}
	switch word := l.letters(); string(word) {
	case "Switch", "Ca", "Hca", "Rt":
		if isHeader(l, word) {
			return Stanzas
		}
	default:
		if isBefore(word) && (l.Is('=') || l.Is('+')) && len(l.Rest()) > 1 {
			return Stanzas
		}
	}
	return NoForm
}

// isNodeLine says whether a line is one of a NodeList:
//
//	Switch	: 0x0002c90000000001 ports 36 "leaf 1" enhanced port 0 lid 7 lmc 0
func isNodeLine(l Line) bool {
	if headerKind(l.letters()) == 0 {
		return false
	}
	l.SkipBlanks()
	if !l.Skip(":") {
		return false
	}
	l.SkipBlanks()
	if !l.Skip("0x") {
		return false
	}
	if _, ok := l.hexadecimal(); !ok {
		return false
	}
	l.SkipBlanks()
	return l.Skip("ports ")
}
