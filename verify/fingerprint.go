package verify

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// SetFingerprints sets the fingerprint of each finding without one. It is 16 hexadecimal digits,
// equal for the same defect of the same fabric in different runs, and different for all findings
// of one result. It depends on the rule, GUIDs and port numbers of the finding, not on its
// message, count, severity, node descriptions or LIDs, so it stays when LIDs are assigned again.
// But it may include an MLID, or a LID that no port has, and includes the message if there is no
// switch, port or LID (such as for a line of a file).
//
// For rules with one finding for each LID, it leaves out mere examples, such as the first switch
// whose path fails.
func (r *Result) SetFingerprints(f *fabric.Fabric) {
	seen := make(map[string]int, len(r.Findings))
	for i := range r.Findings {
		finding := &r.Findings[i]
		if finding.Fingerprint != "" {
			continue
		}
		key := finding.identity(f)
		seen[key]++
		if n := seen[key]; n > 1 {
			key = fmt.Sprintf("%s #%d", key, n)
		}
		h := fnv.New64a()
		h.Write([]byte(key))
		finding.Fingerprint = fmt.Sprintf("%016x", h.Sum64())
	}
}

// perLID are the rules with one finding for each LID, whose switch is a mere example.
var perLID = []string{
	UnicastUnreachable, Misdelivered, SLDropped, UnicastLoop,
	ManagementUnreachable, ManagementSLDropped, ManagementLoop, StaleEntry, UnownedLIDLoop,
	AdaptiveDeadEnd, AdaptiveLoop, ManagementAdaptiveDeadEnd, ManagementAdaptiveLoop,
}

// identity returns the text that distinguishes a finding from others.
func (x *Finding) identity(f *fabric.Fabric) string {
	var b strings.Builder
	b.WriteString(x.Rule)
	switch {
	case x.more:
		return b.String() + " more"
	case x.Rule == NonMinimal: // one finding, with an example
		return b.String()
	case len(x.Ports) > 0:
		ports := make([]string, len(x.Ports))
		for i, e := range x.Ports {
			ports[i] = fmt.Sprintf(" %s/%d", e.Node, e.Port)
			if e.Node == 0 { // a node of a plan, without GUID
				ports[i] += " " + strings.ToLower(e.Name.Text)
			}
		}
		slices.Sort(ports)
		return b.String() + strings.Join(ports, "")
	case len(x.Witness) > 0 && (strings.HasSuffix(x.Rule, CreditLoop) || strings.HasSuffix(x.Rule, AdaptiveEscape)):
		for _, h := range x.Witness {
			fmt.Fprintf(&b, " %s/%d/%d", h.Switch, h.Port, h.VL)
		}
		return b.String()
	}
	if !slices.Contains(perLID, x.Rule) && x.Switch != 0 {
		fmt.Fprintf(&b, " %s", x.Switch)
	}
	switch port := f.LIDPort(x.LID); {
	case x.LID == 0:
	case x.LID < mft.MinMLID && port != fabric.NoPort:
		guid := f.PortGUID(port)
		fmt.Fprintf(&b, " %s+%d", guid, x.LID-f.LID(port))
	default:
		fmt.Fprintf(&b, " %d", x.LID)
	}
	if x.Switch == 0 && x.LID == 0 { // nothing else identifies it
		b.WriteString(" " + x.Message)
	}
	return b.String()
}
