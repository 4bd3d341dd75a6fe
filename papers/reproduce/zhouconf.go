package reproduce

import "slices"

// zhouConference is the conference version of the mesh paper; its figures 8 to 16
// (X21). Its cases are among those of the journal version.
var zhouConference = Paper{
	ID:    "zhou-conf",
	Title: "Zhou, Liu, Chung: Hardware supported multicast in 2-D mesh InfiniBand networks (conference version of zhou2010)",
	Notes: []string{
		"The paper gives no data rate; that of the journal version is taken.",
		"Only the 40 % of sources have the group of 40 %, so groups and sources of more than one change together.",
	},
	Experiments: meshExperiments(conferenceCases),
	Exhibits:    zhouConferenceExhibits,
	Claims:      slices.Concat(conferenceExhibitClaims(), meshClaims(conferenceCases, true)),
}

var conferenceCases = []meshCase{
	{"one-source multicast", "group: 100 %", 1, meshHosts, [3]string{"fig8", "fig9", "fig10"}},
	{"multi-source multicast", "sources: 40 %, group: 40 %", meshPart, meshPart, [3]string{"fig11", "fig12", "fig13"}},
	{"all-source multicast", "sources: 100 %, group: 100 %", meshHosts, meshHosts, [3]string{"fig14", "fig15", "fig16"}},
}
