package plan

import (
	"bytes"
	"regexp"
	"strings"
)

// A .topo file has for each system a line with its type and name, and lines of its cables
// up to the next empty line:
//
//	MTS3600 SW-1
//	   P1 -> MTS3600 SW-2 P19
//	   P2 -4x-10G-> MT25418 H-1 P1
//
// The reader ignores width and speed, and a list of missing boards: CFG: after a system's name.
// Names have no blanks. Ports are those of the front panel, with Ln/ before those of leaf card n
// and Sn/ before those of spine card n.
var (
	topoCable  = regexp.MustCompile(`^\s*(\S+)\s+-(?:\S*-)?>\s+(\S+)\s+(\S+)\s+(\S+)\s*$`)
	topoSystem = regexp.MustCompile(`^\s*(\S+)\s+(\S+)\s*(?:CFG:.*)?$`)
	topoCFG    = regexp.MustCompile(`^\S+\s+\S+\s*CFG:`)
	topoArrow  = regexp.MustCompile(`\s-(?:\S*-)?>\s`)
)

// recognizeTopo returns true for a .topo file: a line with an arrow comes before any like CSV.
func recognizeTopo(data []byte) bool {
	n := 0
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
			continue
		case topoArrow.Match(append([]byte(" "), line...)):
			return true
		case !topoCFG.Match(line) && bytes.ContainsAny(line, ",;"):
			return false
		}
		if n++; n > maxTitle {
			return false
		}
	}
	return false
}

func (r *reader) topo(data []byte) error {
	system := ""
	n := 0
	for raw := range bytes.Lines(data) {
		n++
		line := strings.TrimRight(string(raw), "\r\n\t ")
		bare := strings.TrimSpace(line)
		var err error
		switch cable := topoCable.FindStringSubmatch(line); {
		case bare == "":
			system = ""
		case bare[0] == '#':
		case cable != nil && system == "":
			err = r.skip(r.error(n, line, "a cable of no system; want a line SYSTEM-TYPE SYSTEM-NAME before it, and no empty line between"))
		case cable != nil:
			err = r.add(n, line, End{Device: system, Port: cable[1]}, End{Device: cable[3], Port: cable[4]})
		case topoArrow.MatchString(" " + line):
			err = r.skip(r.error(n, line, "want PORT -> SYSTEM-TYPE SYSTEM-NAME PORT"))
		default:
			system = ""
			if head := topoSystem.FindStringSubmatch(line); head != nil {
				system = head[2]
				continue
			}
			err = r.skip(r.error(n, line, "want SYSTEM-TYPE SYSTEM-NAME, or PORT -> SYSTEM-TYPE SYSTEM-NAME PORT"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
