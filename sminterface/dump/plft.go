package dump

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// plftsOf begins the section of a switch.
const plftsOf = "PLFTs of switch 0x"

// plftReader reads which private LFT each packet takes.
type plftReader struct {
	sectionReader
	x *adaptive.Selector
}

// ReadPLFTMap reads which private LFT a packet takes, in a form of ibweave's own, since
// that of ibdiagnet's plft is not public: for each switch a row for each input port, 0
// included, with the PLFT by SL. name is the file's, for messages. A switch without a
// section takes PLFT 0 and is a Missing Problem, and so is an input port with a cable that
// has no row.
//
// Errors are *fabric.ParseError, and the selector is then nil. With Options.Lenient these
// are Problems instead: unknown switches, ports that the switch does not have, numbers above
// 7, a second section or row, and foreign lines.
func ReadPLFTMap(name string, data []byte, f *fabric.Fabric, opt Options) (*adaptive.Selector, []fabric.Problem, error) {
	r := &plftReader{newSectionReader(name, data, f, opt), adaptive.NewSelector(f)}
	if form := Recognize(data); form != PLFTMap {
		return nil, nil, r.notForm(form, "choice of private LFTs", "ibweave's own form, PLFTs of switch 0x0123456789abcdef; the form of ibdiagnet's plft is not public")
	}
	r.findSections(plftsOf, guidHead(plftsOf))
	r.eachSection(r.readSection)
	r.joinSections()
	r.findMissing()
	return finish(&r.textReader, r.x)
}

// readSection reads the rows of a switch.
func (r *plftReader) readSection(_ int, sec *section) {
	node := r.f.Node(sec.sw)
	given := make([]bool, int(node.NumPorts)+1)
	r.eachLine(sec, func(_ int, line []byte) error {
		if line = bytes.TrimSpace(line); isSilent(line) {
			return nil
		}
		return r.readRow(sec.sw, line, given)
	})
	missing, first := 0, -1
	for in, has := range given {
		if !has && (in == 0 || r.f.Peer(r.f.Port(sec.sw, fabric.PortNum(in))) != fabric.NoPort) {
			if missing++; missing == 1 {
				first = in
			}
		}
	}
	if missing > 0 {
		sec.add(-1, fabric.Missing, fmt.Errorf("no row for %d input ports of switch %s, the first %d: PLFT 0 is taken", missing, node.GUID, first))
	}
}

// readRow reads the row of an input port.
func (r *plftReader) readRow(sw fabric.NodeID, line []byte, given []bool) error {
	s := topology.Line{Text: line}
	in := s.Decimal(9)
	s.SkipBlanks()
	s.Want(":")
	var row [lft.NumSLs]uint8
	for sl := range row {
		s.Blanks()
		plft := s.Decimal(9)
		if plft > maxPLFT {
			return fmt.Errorf("PLFT %d for SL %d, want 0 to %d", plft, sl, maxPLFT)
		}
		row[sl] = uint8(plft)
	}
	switch node := r.f.Node(sw); {
	case !s.AtEnd():
		return errors.New("want an input port and the PLFT of 16 SLs such as 1 : 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1")
	case in >= len(given):
		return fmt.Errorf("port %d of switch %s, which has ports 0 to %d", in, node.GUID, node.NumPorts)
	case given[in] && *r.x.Row(sw, fabric.PortNum(in)) != row:
		return fmt.Errorf("a second row for input port %d of switch %s, with other PLFTs", in, node.GUID)
	}
	given[in] = true
	*r.x.Row(sw, fabric.PortNum(in)) = row
	return nil
}
