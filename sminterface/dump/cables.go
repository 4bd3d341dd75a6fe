package dump

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// cablePort begins the line that names the port of a module in ibdiagnet's cables: Port=1
// Lid=0x00a4 GUID=0x.. Port Name=leaf1/U1/P1.
const cablePort = "Port="

// ReadCables reads ibdiagnet's file of cables into c.Lines, by the ports of f:
// the temperature of each port's module, and the difference in light between
// its lanes. name is the file's, for messages. Other lines of a module are
// ignored. Errors are *fabric.ParseError: a line Port= that cannot be read, or
// whose port the fabric does not have; with Options.Lenient these are Problems.
func (c *Counters) ReadCables(name string, data []byte, f *fabric.Fabric, opt Options) ([]fabric.Problem, error) {
	r := newTextReader(name, data, opt)
	c.readCables(&r, f)
	return r.listProblems()
}

func (c *Counters) readCables(r *textReader, f *fabric.Fabric) {
	var line *Line
	most, least := 0.0, 0.0 // most and least light of a lane of the port, in mW
	r.eachLine(func(_ int, text []byte) error {
		text = bytes.TrimSpace(text)
		if beginsWith(text, cablePort) {
			p, err := cablePortOf(f, text)
			if line = nil; err == nil {
				line, most, least = c.Line(f, p), 0, math.Inf(1)
			}
			return err
		}
		key, value, _ := strings.Cut(string(text), ":")
		amount, ok := ParseAmount(value)
		switch {
		case line == nil || !ok:
		case key == "Temperature":
			line.Celsius = amount
		case strings.HasPrefix(key, "RX") && strings.HasSuffix(key, " Power"):
			most, least = max(most, amount), min(least, amount)
			if most > 0 {
				line.Spread = 10 * math.Log10(most/max(least, most/1e5))
			}
		}
		return nil
	})
}

// cablePortOf returns the port that a line Port= names, by the GUID of the port or of its node.
func cablePortOf(f *fabric.Fabric, text []byte) (fabric.PortID, error) {
	s := topology.Line{Text: text}
	s.Want(cablePort)
	num := s.Decimal(3)
	s.Want(" Lid=")
	lid := s.Hex0x(4)
	s.Want(" GUID=")
	guid := s.GUID()
	if s.Bad {
		return fabric.NoPort, fmt.Errorf("want Port=1 Lid=0x0001 GUID=0x0000000000000001 Port Name=..")
	}
	n, known := f.NodeByGUID(guid)
	if p := f.LIDPort(fabric.LID(lid)); !known && p != fabric.NoPort && f.PortGUID(p) == guid {
		n, known = f.Owner(p), true
	}
	if !known || num > int(f.Node(n).NumPorts) {
		return fabric.NoPort, fmt.Errorf("the fabric has no port %d of %s", num, guid)
	}
	return f.Port(n, fabric.PortNum(num)), nil
}

// ParseAmount reads the number at the beginning of a text, before any unit: 47 of
// "47 C". ok is false for N/A and the like, and for numbers that no module has.
func ParseAmount(text string) (x float64, ok bool) {
	text = strings.TrimSpace(text)
	digits := text[:len(text)-len(strings.TrimLeft(text, "+-.0123456789"))]
	x, err := strconv.ParseFloat(digits, 64)
	return x, err == nil && math.Abs(x) < 1e4
}
