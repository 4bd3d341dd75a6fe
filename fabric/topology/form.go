package topology

import (
	"bytes"
	"regexp"

	"github.com/ibweave/ibweave/fabric"
)

// Form is one of the forms of topology text.
type Form uint8

// The forms. Stanzas have everything that a Fabric holds. In other forms than SubnetList and
// NetDump the GUIDs of adapters and routers are those of their ports less the port number (see
// Parse), and there are no system GUIDs, vendors, devices, LMCs, nor the kind of port 0.
const (
	NoForm Form = iota
	// Stanzas is what ibnetdiscover prints, and ibsim's short form.
	Stanzas
	// PortList is what ibnetdiscover -p prints.
	PortList
	// LinkInfo is the output of iblinkinfo, with or without -l. It has every port of a switch,
	// also those that are down, so that the number of ports is right. An adapter has only the ports
	// with a cable. With -l a node with several ports under one GUID is read as a switch, and routers
	// are read as adapters. Without -l, two nodes with the same description, and with ports
	// of the same number and LID, cannot be told apart: that is an error.
	LinkInfo
	// SubnetList is opensm-subnet.lst, and ibdiagnet's lst. It has GUIDs and vendors of nodes, but
	// lacks nodes without a cable, LMC and the kind of port 0. Links that are down are left out.
	SubnetList
	// UFMLinks are the links of UFM. They have neither LIDs nor speeds; a node has as many ports
	// as its highest one with a cable, and routers are taken for adapters.
	UFMLinks
	// NetDump is ibdiagnet's net_dump. It has every port of a switch and labels. Adapters are known
	// from the rows of switches: the GUID there is taken for that of the node, and routers are taken
	// for adapters.
	NetDump
	// NodeList is what ibswitches, ibhosts, ibrouters and ibnodes print:
	// GUIDs and names, and no cables. ParseNames reads it; Parse refuses it.
	NodeList
)

// recognizeWithin is how many bytes Recognize reads, not
// counting errors of the sweep, which may be thousands.
const recognizeWithin = 64 << 10

// Recognize returns the form of data, which may be only the
// beginning of a file, by the first line that only one form has.
func Recognize(data []byte) Form {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	form, _ := recognize(withLF(withoutEscapes(data[:min(len(data), 64*recognizeWithin)])), recognizeWithin)
	return form
}

// recognize is Recognize for text with LF line ends, in the first within bytes.
// It also returns where the deciding line begins.
func recognize(data []byte, within int) (Form, int) {
	for at, left := 0, within; at < len(data) && left > 0; {
		text, _ := cutLine(data[at:])
		l := Line{Text: text[:min(len(text), left)]}
		l.SkipBlanks()
		form := formOf(l.Rest())
		from := at + l.At
		if ufm := data[from:min(len(data), from+left)]; form == UFMLinks && !(ufmBegin.Match(ufm) && bytes.Contains(ufm, []byte(`"source_guid"`))) {
			form = NoForm
		}
		if form != NoForm {
			return form, from
		}
		if kindOfNoise(text) == fabric.ForeignLines {
			left -= len(text) + 1
		}
		at += len(text) + 1
	}
	return NoForm, 0
}

// ufmBegin matches the beginning of a list in JSON, empty or of objects.
var ufmBegin = regexp.MustCompile(`^\[[ \t\n]*[{\]]`)

// Words that lines of stanzas begin with.
const (
	headerWords = `(?:Switch|Ca|Hca|Rt)`
	beforeWords = `(?:vendid|devid|sysimgguid|(?:switch|h?ca|rt)guids?)`
)

// formLine matches the beginning of lines that only one form has,
// in the order of forms. Links of UFM need more than a line.
var formLine = regexp.MustCompile(`^(?:` +
	`(# Topology file:|` + headerWords + `[ \t]*\d+[ \t]*"|` + beforeWords + `[ \t]*[=+].)|` +
	`((?:SW|CA|R[Tt])[ \t]+\d+[ \t]+\d+[ \t]+0x)|` +
	`((?:CA|Router): .*:$|Switch: 0x|(?:0x[0-9a-fA-F]{1,16}[ \t]|\d+[ \t]+\d+\[).*==\(.*==>)|` +
	`(\{ [^"{[ ][^ ]+ Ports:)|` +
	`(\[)|` +
	`(".*",[ \t]*[^",]*,[ \t]*0x[0-9a-fA-F]{1,16},[ \t]*LID[ \t])|` +
	`(` + headerWords + `[ \t]*:[ \t]*0x[0-9a-fA-F]{1,16}[ \t]*ports ))`)

// formOf returns the form of a line without blanks in front, NoForm if it may be of several.
func formOf(line []byte) Form {
	m := formLine.FindSubmatchIndex(line)
	for form := Stanzas; m != nil; form++ {
		if m[2*form] >= 0 {
			return form
		}
	}
	return NoForm
}
