package plugin

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// maxSlow is the most slow cables that our log names.
const maxSlow = 20

// cables logs cables slower than their peers, and a finding that many
// cables are idle: all of it in our log, one line for each of the two
// in OpenSM's. It does so only if others are slow than before, or if
// the finding is new or gone.
func (p *Plugin) cables(t *Tables) {
	if p.cablesOf == t.snapshot {
		return
	}
	p.cablesOf = t.snapshot
	slow := cabling.SlowLinks(t.Fabric)
	count := len(slow)
	names := text.Each(slow[:min(count, maxSlow)], func(x verify.Finding) string { return oneLine(x.Message) })
	if all := strings.Join(names, "\n"); all != p.slowCables {
		p.slowCables = all
		for _, line := range names {
			p.log.Warn("slow cable: "+line, zap.String("engine", t.Engine))
		}
		switch {
		case count == 0:
			p.log.Info("no cable is slower than its peers", zap.String("engine", t.Engine))
		case count == 1:
			p.host.Log(LogInfo, t.Engine+": slow cable: "+names[0])
		default:
			p.host.Log(LogInfo, fmt.Sprintf("%s: %d slow cables, the first: %s", t.Engine, count, names[0]))
		}
	}
	idle := ""
	for i := range t.Verify.Findings {
		if x := &t.Verify.Findings[i]; x.Rule == verify.IdleLinks && x.Severity >= verify.Warning {
			idle = oneLine(x.Message)
		}
	}
	if p.manyIdle != (idle != "") {
		p.manyIdle = idle != ""
		if !p.manyIdle {
			p.log.Info("cables that carried nothing are in use", zap.String("engine", t.Engine))
			return
		}
		p.log.Warn(idle, zap.String("engine", t.Engine))
		p.host.Log(LogInfo, t.Engine+": "+idle)
	}
}
