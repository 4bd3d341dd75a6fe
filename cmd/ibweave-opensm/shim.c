//go:build opensm

/*
 * The C half of the plugin: OpenSM's structures to flat arrays and back. It
 * decides nothing. OpenSM calls from its own threads and holds its lock, for
 * path_sl a shared one, so that nothing that is read here changes meanwhile.
 *
 * No pointer into OpenSM outlives a callback: switches are found by GUID each
 * time, since OpenSM frees those that have left the subnet.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iba/ib_types.h>
#include <complib/cl_qmap.h>
#include <complib/cl_fleximap.h>
#include <complib/cl_ptr_vector.h>
#include <complib/cl_passivelock.h>
#include <opensm/osm_config.h>
#include <opensm/osm_version.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_event_plugin.h>
#include <opensm/osm_subnet.h>
#include <opensm/osm_switch.h>
#include <opensm/osm_node.h>
#include <opensm/osm_port.h>
#include <opensm/osm_multicast.h>
#include <opensm/osm_mcm_port.h>
#include <opensm/osm_log.h>
#include <opensm/osm_file_ids.h>

#include "shim.h"
#include "_cgo_export.h"

/*
 * These are in the program opensm and its libraries. Weak, so that the library
 * can be linked and loaded without them, and missing ones are told by name.
 */
#pragma weak osm_register_external_routing_engine
#pragma weak osm_switch_set_hops
#pragma weak osm_mcast_tbl_set
#pragma weak osm_mcast_tbl_clear_mlid
#pragma weak osm_link_is_throttled
#pragma weak osm_purge_mtree
#pragma weak osm_log_v2
#pragma weak osm_req_get
#pragma weak osm_sm_signal
#pragma weak wait_for_pending_transactions
#pragma weak cl_qmap_get

/* OpenSM has no number for files of plugins; this one's lines are event plugins'. */
#define LOG_FILE OSM_FILE_EVENT_PLUGIN_C

struct plugin;

struct engine {
	struct plugin *plugin;
	int index;
	osm_routing_engine_t *re;	/* NULL unless routing_engine names it */
	char *name;
};

struct plugin {
	osm_opensm_t *osm;
	uintptr_t handle;
	int num_engines;
	int sweeping;	/* from the start of a heavy sweep to the end of its unicast */
	int shadow;	/* tables are not installed */
	int found;	/* how many tables this sweep has read */
	unsigned need_update;	/* OpenSM's, while a sweep compares with the tables that were read */
	struct engine *engines;
};

/*
 * OpenSM's handlers run on the stack of the thread that has the signal. Inside a
 * call into Go that may be a small one of Go's, so the signals that OpenSM
 * handles wait until the call is over. OpenSM blocks them in all its threads but
 * the main one, and Go's threads inherit that.
 */
static void hold_signals(sigset_t *saved)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, saved);
}

static void release_signals(const sigset_t *saved)
{
	pthread_sigmask(SIG_SETMASK, saved, NULL);
}

void ibw_log(struct osm_opensm *osm, int level, const char *line)
{
	if (osm_log_v2 && osm_log_is_active_v2(&osm->log, (osm_log_level_t) level, LOG_FILE))
		osm_log_v2(&osm->log, (osm_log_level_t) level, LOG_FILE, "ibweave: %s\n", line);
}

/* Has a master sweep, as SIGHUP does. */
void ibw_sweep(struct osm_opensm *osm)
{
	if (!osm_sm_signal || osm->subn.sm_state != IB_SMINFO_STATE_MASTER)
		return;
	osm->subn.force_heavy_sweep = TRUE;
	osm_sm_signal(&osm->sm, OSM_SIGNAL_SWEEP);
}

static void settings_take(const osm_opensm_t *osm, struct ibw_settings *s)
{
	const osm_subn_opt_t *opt = &osm->subn.opt;

	s->qos = opt->qos ? 1 : 0;
	s->ucast_cache = opt->use_ucast_cache ? 1 : 0;
	s->dumps = osm_log_is_active(&osm->log, OSM_LOG_ROUTING) ? 1 : 0;
	s->max_op_vls = opt->max_op_vls;
}

/* Names options that are set and that our engines take no notice of. */
static void ignored_take(const osm_subn_opt_t *opt, char *names, size_t size)
{
	const struct {
		const char *name;
		int set;
	} options[] = {
		{ "root_guid_file", !!opt->root_guid_file },
		{ "cn_guid_file", !!opt->cn_guid_file },
		{ "io_guid_file", !!opt->io_guid_file },
		{ "max_reverse_hops", !!opt->max_reverse_hops },
		{ "connect_roots", opt->connect_roots },
		{ "quasi_ftree_indexing", opt->quasi_ftree_indexing },
		{ "ids_guid_file", !!opt->ids_guid_file },
		{ "guid_routing_order_file", !!opt->guid_routing_order_file },
		{ "port_search_ordering_file", !!opt->port_search_ordering_file },
		{ "port_prof_ignore_file", !!opt->port_prof_ignore_file },
		{ "hop_weights_file", !!opt->hop_weights_file },
		{ "port_profile_switch_nodes", opt->port_profile_switch_nodes },
		{ "port_shifting", opt->port_shifting },
		{ "scatter_ports", !!opt->scatter_ports },
		{ "guid_routing_order_no_scatter", opt->guid_routing_order_no_scatter },
		{ "do_mesh_analysis", opt->do_mesh_analysis },
		{ "lash_start_vl", !!opt->lash_start_vl },
		{ "nue_max_num_vls", opt->nue_max_num_vls > 1 },
		{ "nue_include_switches", opt->nue_include_switches },
		{ "lfts_file", !!opt->lfts_file },
		{ "lid_matrix_dump_file", !!opt->lid_matrix_dump_file },
	};
	size_t i, used = 0;

	names[0] = 0;
	for (i = 0; i < sizeof(options) / sizeof(options[0]) && used < size; i++)
		if (options[i].set)
			used += snprintf(names + used, size - used, "%s%s", used ? ", " : "", options[i].name);
}

/*
 * OpenSM's nodes and ports lie all over its memory, some 40 MB of it for a subnet of
 * 4,000 nodes, so the time that a snapshot takes is that of cache misses. What is read
 * next is asked for before it is needed: nodes some steps ahead, ports likewise.
 */
#define NODES_AHEAD 4
#define PORTS_AHEAD 3
#define PEERS_AHEAD 12

static void fetch(const void *from, const void *last)
{
	const char *at = from;

	for (; at < (const char *) last; at += 64)
		__builtin_prefetch(at);
	__builtin_prefetch(last);
}

/* What port_take() reads of a port. */
static void fetch_port(const osm_physp_t *p)
{
	fetch(p, &p->healthy);
}

static void fetch_node(const osm_node_t *node)
{
	fetch(&node->sw, &node->physp_tbl_size);
	fetch(&node->physp_table[0].port_guid, &node->physp_table[0].healthy);
	fetch_port(&node->physp_table[1]);
}

static void port_take(const osm_physp_t *p, struct ibw_port *to)
{
	const ib_port_info_t *pi = &p->port_info;

	to->guid = cl_ntoh64(p->port_guid);
	to->lid = cl_ntoh16(pi->base_lid);
	to->lmc = ib_port_info_get_lmc(pi);
	to->vl_cap = ib_port_info_get_vl_cap(pi);
	to->op_vls = ib_port_info_get_op_vls(pi);
	to->width = pi->link_width_active;
	to->speed = ib_port_info_get_link_speed_active(pi);
	to->speed_ext = ib_port_info_get_link_speed_ext_active(pi);
	to->fdr10 = p->ext_port_info.link_speed_active & 1;
	to->remote = p->port_num ? (uint64_t) (uintptr_t) p->p_remote_physp : 0;
}

static size_t place_of(const struct ibw_place *places, size_t num, const osm_node_t *node)
{
	uint64_t address = (uint64_t) (uintptr_t) node;
	size_t i = (size_t) ((address * 0x9e3779b97f4a7c15u) >> 20) & (num - 1);

	while (places[i].address && places[i].address != address)
		i = (i + 1) & (num - 1);
	return i;
}

/* Where the cables of a node lead to, once all nodes have their places. */
static void peers_take(const osm_opensm_t *osm, const struct ibw_node *of, struct ibw_port *ports, int32_t num_ports,
		       const struct ibw_place *places, size_t num_places)
{
	const osm_node_t *node = (const osm_node_t *) (uintptr_t) of->address;
	unsigned p;

	for (p = 0; p <= of->num_ports; p++) {
		struct ibw_port *port = &ports[of->first + (int32_t) p];
		const osm_physp_t *r = (const osm_physp_t *) (uintptr_t) port->remote;
		size_t at;

		if (of->first + (int32_t) p + PEERS_AHEAD < num_ports) {
			const osm_physp_t *next = (const osm_physp_t *) (uintptr_t) port[PEERS_AHEAD].remote;

			if (next)
				fetch(&next->port_guid, &next->healthy);
		}
		if (!r)
			continue;
		if (!osm_physp_is_valid(r) || r->p_remote_physp != &node->physp_table[p] || r == r->p_remote_physp || r->port_num == 0)
			continue;
		at = place_of(places, num_places, r->p_node);
		if (!places[at].address)
			continue;
		port->peer = places[at].node;
		port->num = r->port_num;
		if (!osm_physp_is_healthy(r->p_remote_physp) || !osm_physp_is_healthy(r) ||
		    (osm->subn.opt.avoid_throttled_links && osm_link_is_throttled(r->p_remote_physp, osm->subn.opt.fdr10)))
			port->sick = 1;
	}
}

size_t ibw_num_nodes(const struct osm_opensm *osm)
{
	return cl_qmap_count(&osm->subn.node_guid_tbl);
}

size_t ibw_num_switches(const struct osm_opensm *osm)
{
	return cl_qmap_count(&osm->subn.sw_guid_tbl);
}

/*
 * Takes a snapshot. Nodes, ports and places must be zero, num_places a power of two
 * above ibw_num_nodes(). It is 0, or -1 when room is too small: num_nodes and num_ports
 * then are what it takes.
 */
int ibw_snapshot_take(const struct osm_opensm *osm, struct ibw_snapshot *s, struct ibw_node *nodes, int32_t room_nodes,
		      struct ibw_port *ports, int32_t room_ports, struct ibw_place *places, size_t num_places)
{
	const cl_qmap_t *tbl = &osm->subn.node_guid_tbl;
	const cl_map_item_t *item, *ahead = cl_qmap_head(tbl);
	size_t lids = cl_ptr_vector_get_size(&osm->subn.port_lid_tbl);
	int32_t n = 0, num = 0, i;

	settings_take(osm, &s->settings);
	s->max_lid = lids ? (uint16_t) (lids - 1) : 0;
	for (i = 0; i < NODES_AHEAD && ahead != cl_qmap_end(tbl); i++)
		ahead = cl_qmap_next(ahead);
	for (item = cl_qmap_head(tbl); item != cl_qmap_end(tbl); item = cl_qmap_next(item)) {
		const osm_node_t *node = (const osm_node_t *) item;
		const ib_node_info_t *ni = &node->node_info;
		int32_t first = num;
		struct ibw_node *to;
		size_t at;
		unsigned p;

		if (ahead != cl_qmap_end(tbl)) {
			fetch_node((const osm_node_t *) ahead);
			ahead = cl_qmap_next(ahead);
		}
		num += ni->num_ports + 1;
		i = n++;
		if (n > room_nodes || num > room_ports)
			continue;	/* to know how many there are */
		at = place_of(places, num_places, node);
		places[at].address = (uint64_t) (uintptr_t) node;
		places[at].node = i;
		to = &nodes[i];
		to->address = (uint64_t) (uintptr_t) node;
		to->guid = cl_ntoh64(ni->node_guid);
		to->system_guid = cl_ntoh64(ni->sys_guid);
		to->vendor_id = cl_ntoh32(ib_node_info_get_vendor_id(ni));
		to->device_id = cl_ntoh16(ni->device_id);
		to->type = ni->node_type;
		to->num_ports = ni->num_ports;
		to->first = first;
		memcpy(to->description, node->node_desc.description, sizeof(to->description) - 1);
		if (node->sw) {
			to->linear_cap = cl_ntoh16(node->sw->switch_info.lin_cap);
			to->enhanced_port0 = ib_switch_info_is_enhanced_port0(&node->sw->switch_info) ? 1 : 0;
		}
		for (p = 0; p <= ni->num_ports; p++) {
			struct ibw_port *port = &ports[first + (int32_t) p];

			port->peer = -1;
			if (p + PORTS_AHEAD < node->physp_tbl_size)
				fetch_port(&node->physp_table[p + PORTS_AHEAD]);
			if (p < node->physp_tbl_size && osm_physp_is_valid(&node->physp_table[p]))
				port_take(&node->physp_table[p], port);
		}
	}
	s->num_nodes = n;
	s->num_ports = num;
	if (n > room_nodes || num > room_ports)
		return -1;
	for (i = 0; i < n; i++)
		peers_take(osm, &nodes[i], ports, num, places, num_places);
	return 0;
}

static osm_switch_t *switch_by_guid(const osm_opensm_t *osm, uint64_t guid)
{
	cl_map_item_t *item = cl_qmap_get(&osm->subn.sw_guid_tbl, cl_hton64(guid));

	return item == cl_qmap_end(&osm->subn.sw_guid_tbl) ? NULL : (osm_switch_t *) item;
}

/* Says whether all tables can be written: 0, or -1. */
int ibw_check_switches(struct osm_opensm *osm, const uint64_t *guids, int32_t n, uint16_t max_lid)
{
	int32_t i;

	if ((uint32_t) n != cl_qmap_count(&osm->subn.sw_guid_tbl))
		return -1;
	for (i = 0; i < n; i++) {
		osm_switch_t *sw = switch_by_guid(osm, guids[i]);

		if (!sw || !sw->new_lft || !sw->hops || sw->lft_size <= max_lid || sw->max_lid_ho < max_lid)
			return -1;
	}
	return 0;
}

extern int wait_for_pending_transactions(osm_stats_t *stats);

/* No switch has 254 ports: what a block has until an answer is read into it. */
#define UNREAD 254

/* How many blocks a switch is asked for before its answers are waited for: one that falls silent costs the timeouts of these. */
#define BLOCKS_AT_ONCE 8

/*
 * How many blocks of its table a switch is asked for: 0 for one that OpenSM has no room for, and for one that
 * was just started, whose LinearFDBTop no subnet manager has written yet.
 */
static unsigned lft_blocks(const osm_switch_t *sw)
{
	unsigned blocks = sw->max_lid_ho / IB_SMP_DATA_SIZE + 1;

	return sw->lft && sw->switch_info.lin_top && blocks * IB_SMP_DATA_SIZE <= sw->lft_size ? blocks : 0;
}

/* Whether blocks from first to before end were answered. */
static int lft_answered(const osm_switch_t *sw, unsigned first, unsigned end)
{
	for (; first < end; first++)
		if (sw->lft[first * IB_SMP_DATA_SIZE] == UNREAD)
			return 0;
	return 1;
}

/* Asks a switch for blocks from first to before end; OpenSM puts the answers into lft. It returns how many. */
static unsigned lft_ask(osm_opensm_t *osm, osm_switch_t *sw, unsigned first, unsigned end)
{
	osm_physp_t *p = osm_node_get_physp_ptr(sw->p_node, 0);
	osm_madw_context_t context = { 0 };
	unsigned block, asked = 0;

	if (!p)
		return 0;
	context.lft_context.node_guid = osm_node_get_node_guid(sw->p_node);
	for (block = first; block < end; block++)
		if (osm_req_get(&osm->sm, osm_physp_get_dr_path_ptr(p), IB_MAD_ATTR_LIN_FWD_TBL, cl_hton32(block), FALSE,
				ib_port_info_get_m_key(&p->port_info), 0, CL_DISP_MSGID_NONE, &context) == IB_SUCCESS)
			asked++;
	return asked;
}

/* Waits for all answers. Their handler takes OpenSM's lock, which is let go meanwhile. It is not 0 if OpenSM is ending. */
static int lft_wait(osm_opensm_t *osm)
{
	int ending;

	cl_plock_release(&osm->lock);
	ending = wait_for_pending_transactions(&osm->stats);
	cl_plock_excl_acquire(&osm->lock);
	return ending;
}

/*
 * Takes ports out of lft that the switch does not have: OpenSM believes lft, of which by itself it
 * reads nothing, and its own engines index the ports of the node by it. Of a switch that was not
 * read whole nothing stays.
 */
static void lft_clean(osm_switch_t *sw)
{
	unsigned i;

	for (i = 0; sw->lft && i < sw->lft_size; i++)
		if (sw->need_update || sw->lft[i] >= sw->num_ports)
			sw->lft[i] = OSM_NO_PATH;
}

/*
 * Reads the forwarding tables of the switches: with need_update OpenSM does not know them, and
 * would write them all. That is so until a sweep of a new master has ended without errors. All are
 * asked for one block, then those that have answered for the next ones, and no more once timeout_ms
 * are over. It returns how many were asked, of which those that were read whole have no need_update then,
 * and -1 if OpenSM is ending.
 */
static int lfts_read(struct plugin *p, int timeout_ms)
{
	osm_opensm_t *osm = p->osm;
	cl_qmap_t *tbl = &osm->subn.sw_guid_tbl;
	uint64_t stop = cl_get_time_stamp() + 1000ull * timeout_ms;
	cl_map_item_t *item;
	unsigned before = 0, first = 0, end = 1, asked;
	int n = 0, ending;

	for (item = cl_qmap_head(tbl); item != cl_qmap_end(tbl); item = cl_qmap_next(item)) {
		osm_switch_t *sw = (osm_switch_t *) item;

		if (!sw->need_update)
			sw->need_update = 1;
		if (sw->lft)
			memset(sw->lft, UNREAD, sw->lft_size);
	}
	do {
		asked = 0;
		for (item = cl_qmap_head(tbl); item != cl_qmap_end(tbl); item = cl_qmap_next(item)) {
			osm_switch_t *sw = (osm_switch_t *) item;
			unsigned blocks = lft_blocks(sw);

			if (first < blocks && lft_answered(sw, before, first))
				asked += lft_ask(osm, sw, first, end < blocks ? end : blocks);
		}
		ending = lft_wait(osm);
		before = first;
		first = end;
		end += BLOCKS_AT_ONCE;
	} while (asked && !ending && cl_get_time_stamp() <= stop);
	for (item = cl_qmap_head(tbl); item != cl_qmap_end(tbl); item = cl_qmap_next(item)) {
		osm_switch_t *sw = (osm_switch_t *) item;

		if (!ending && lft_blocks(sw)) {
			n++;
			if (lft_answered(sw, 0, lft_blocks(sw)))
				sw->need_update = 0;
		}
		lft_clean(sw);
	}
	return ending ? -1 : n;
}

/*
 * The table that was read from a switch, of LIDs up to max_lid: how many entries, beyond which it has
 * none, or -1 if it was not read. A switch that was just started has one without a path.
 */
int ibw_found_lft(struct osm_opensm *osm, uint64_t guid, uint8_t *row, uint16_t max_lid)
{
	osm_switch_t *sw = switch_by_guid(osm, guid);
	uint16_t top;

	if (!sw || !sw->lft || sw->lft_size <= max_lid)
		return -1;
	top = cl_ntoh16(sw->switch_info.lin_top);
	if (sw->need_update && top)
		return -1;
	if (top > max_lid)
		top = max_lid;
	memcpy(row, sw->lft, (size_t) top + 1);
	return top + 1;
}

/*
 * count adds up the LIDs of each port, as OpenSM's file engine does: OpenSM's list
 * of routes and its multicast trees choose between equal ports by them.
 */
int ibw_set_lfts(struct osm_opensm *osm, const uint64_t *guids, int32_t n, const uint8_t *rows, int64_t stride, uint16_t max_lid,
		 int count)
{
	int32_t i;
	uint16_t lid;

	if (ibw_check_switches(osm, guids, n, max_lid))
		return -1;
	for (i = 0; i < n; i++) {
		osm_switch_t *sw = switch_by_guid(osm, guids[i]);

		memcpy(sw->new_lft, rows + i * stride, (size_t) max_lid + 1);
		memset(sw->new_lft + max_lid + 1, OSM_NO_PATH, (size_t) sw->lft_size - max_lid - 1);
		if (!count)
			continue;
		for (lid = 1; lid <= max_lid; lid++)
			if (sw->new_lft[lid] < sw->num_ports)
				osm_switch_count_path(sw, sw->new_lft[lid]);
	}
	return 0;
}

/* All hops of one switch: rows has width bytes for each LID, by port. */
int ibw_set_hop_rows(struct osm_opensm *osm, uint64_t guid, int32_t n, const uint16_t *lids, const uint8_t *rows, int32_t width)
{
	osm_switch_t *sw = switch_by_guid(osm, guid);
	int32_t t, p;

	if (!sw)
		return -1;
	for (t = 0; t < n; t++) {
		const uint8_t *row = rows + (int64_t) t * width;

		for (p = row[0] == 0 ? 0 : 1; p < width && p < sw->num_ports; p++)
			if (row[p] != OSM_NO_PATH && osm_switch_set_hops(sw, lids[t], (uint8_t) p, row[p]))
				return -1;
	}
	return 0;
}

static int grow(void **list, int32_t *room, int32_t need, size_t size)
{
	int32_t n = *room ? *room : 64;
	void *more;

	if (need <= *room)
		return 0;
	while (n < need)
		n *= 2;
	more = realloc(*list, (size_t) n * size);
	if (!more)
		return -1;
	*list = more;
	*room = n;
	return 0;
}

/* Appends the groups of one MLID. */
static int groups_take(osm_mgrp_box_t *mgb, struct ibw_groups *g)
{
	cl_list_item_t *item;

	for (item = cl_qlist_head(&mgb->mgrp_list); item != cl_qlist_end(&mgb->mgrp_list); item = cl_qlist_next(item)) {
		osm_mgrp_t *mgrp = cl_item_obj(item, mgrp, list_item);
		cl_qmap_t *tbl = &mgrp->mcm_alias_port_tbl;
		cl_map_item_t *m;
		struct ibw_group *to;

		if (grow((void **)&g->groups, &g->room_groups, g->num_groups + 1, sizeof(*g->groups)))
			return -1;
		to = &g->groups[g->num_groups++];
		memset(to, 0, sizeof(*to));
		memcpy(to->mgid, mgrp->mcmember_rec.mgid.raw, sizeof(to->mgid));
		to->mlid = mgb->mlid;
		to->sl = (uint8_t) (cl_ntoh32(mgrp->mcmember_rec.sl_flow_hop) >> 28);
		to->first = g->num_members;
		for (m = cl_qmap_head(tbl); m != cl_qmap_end(tbl); m = cl_qmap_next(m)) {
			osm_mcm_alias_guid_t *alias = (osm_mcm_alias_guid_t *) m;
			struct ibw_member *member;

			if (!alias->p_base_mcm_port || !alias->p_base_mcm_port->port)
				continue;
			if (grow((void **)&g->members, &g->room_members, g->num_members + 1, sizeof(*g->members)))
				return -1;
			member = &g->members[g->num_members++];
			memset(member, 0, sizeof(*member));
			member->port_guid = cl_ntoh64(alias->p_base_mcm_port->port->guid);
			member->state = alias->scope_state & 0x0f;
			to->num_members++;
		}
	}
	return 0;
}

int ibw_groups_all(struct osm_opensm *osm, struct ibw_groups *g)
{
	size_t i;

	for (i = 0; i < sizeof(osm->subn.mboxes) / sizeof(osm->subn.mboxes[0]); i++)
		if (osm->subn.mboxes[i] && groups_take(osm->subn.mboxes[i], g))
			return -1;
	return 0;
}

void ibw_groups_free(struct ibw_groups *g)
{
	free(g->groups);
	free(g->members);
	memset(g, 0, sizeof(*g));
}

/*
 * Has OpenSM write the MLID's block to all switches. By itself it writes a
 * switch's blocks up to the last that has ever had a mask in this OpenSM
 * (osm_mcast_tbl_get_block): a switch that was away keeps the masks of a group
 * that it is no longer on, or that there is no longer.
 */
static void masks_touch(osm_opensm_t *osm, uint16_t mlid)
{
	cl_qmap_t *tbl = &osm->subn.sw_guid_tbl;
	cl_map_item_t *item;

	for (item = cl_qmap_head(tbl); item != cl_qmap_end(tbl); item = cl_qmap_next(item)) {
		osm_mcast_tbl_t *t = &((osm_switch_t *) item)->mcast_tbl;

		if (!t->p_mask_tbl || mlid > t->max_mlid_ho)
			continue;
		osm_mcast_tbl_set(t, mlid, 0);
		osm_mcast_tbl_clear_mlid(t, mlid);
	}
}

void ibw_set_masks(struct osm_opensm *osm, uint16_t mlid, const struct ibw_switch_port *ports, int32_t n)
{
	osm_switch_t *sw = NULL;
	uint64_t guid = 0;
	int32_t i;

	for (i = 0; i < n; i++) {
		osm_mcast_tbl_t *tbl;

		if (!sw || ports[i].guid != guid) {
			guid = ports[i].guid;
			sw = switch_by_guid(osm, guid);
		}
		if (!sw)
			continue;	/* it has left since the last routing */
		tbl = &sw->mcast_tbl;
		if (!tbl->p_mask_tbl || mlid > tbl->max_mlid_ho || ports[i].port >= sw->num_ports)
			continue;
		osm_mcast_tbl_set(tbl, mlid, ports[i].port);
	}
}

/* The callbacks. Go's functions return, whatever happens, and never panic. */

static void cb_sl2vl(void *context, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *t)
{
	struct engine *e = context;
	uint8_t table[8];

	if (ibweaveSL2VL(e->plugin->handle, cl_ntoh64(port->p_node->node_info.node_guid),
			 port->p_node->sw ? in : 0, port->p_node->sw ? out : port->port_num, table))
		memcpy(t->raw_vl_by_sl, table, sizeof(t->raw_vl_by_sl));
}

static void cb_vlarb(void *context, osm_physp_t *port, uint8_t port_num, ib_vl_arb_table_t *block, unsigned length, unsigned num)
{
	struct engine *e = context;
	uint8_t entries[2 * IB_NUM_VL_ARB_ELEMENTS_IN_BLOCK];
	unsigned i;

	(void)port;
	(void)port_num;
	if (length > IB_NUM_VL_ARB_ELEMENTS_IN_BLOCK)
		return;
	if (!ibweaveVLArb(e->plugin->handle, num, length, entries))
		return;
	for (i = 0; i < length; i++) {
		block->vl_entry[i].vl = entries[2 * i];
		block->vl_entry[i].weight = entries[2 * i + 1];
	}
}

static uint8_t cb_path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	struct engine *e = context;

	return ibweavePathSL(e->plugin->handle, hint, cl_ntoh16(slid), cl_ntoh16(dlid));
}

static ib_api_status_t cb_multicast(void *context, osm_mgrp_box_t *mgb)
{
	struct engine *e = context;
	struct ibw_groups g = { 0 };
	sigset_t saved;

	/* The tree that another engine of OpenSM's may have left. */
	osm_purge_mtree(&e->plugin->osm->sm, mgb);
	if (groups_take(mgb, &g)) {
		ibw_groups_free(&g);
		return IB_INSUFFICIENT_MEMORY;
	}
	masks_touch(e->plugin->osm, mgb->mlid);
	hold_signals(&saved);
	ibweaveMasks(e->plugin->handle, e->plugin->osm, mgb->mlid, &g);
	release_signals(&saved);
	ibw_groups_free(&g);
	return IB_SUCCESS;
}

/* How long a sweep waits for the tables of the switches, in ms. */
#define READ_TIMEOUT 20000

static int cb_lid_matrices(void *context)
{
	struct engine *e = context;
	struct plugin *p = e->plugin;
	struct ibw_wants wants = { 0 };
	sigset_t saved;
	int status;

	if (!p->shadow && p->sweeping && p->osm->subn.need_update && osm_req_get && wait_for_pending_transactions) {
		p->found = lfts_read(p, READ_TIMEOUT);
		if (p->found < 0)
			return -1;	/* OpenSM is ending */
		if (p->found > 0) {
			/* OpenSM is to compare, switch by switch. */
			p->need_update = p->osm->subn.need_update;
			p->osm->subn.need_update = 0;
		}
	}
	hold_signals(&saved);
	status = ibweaveRoute(p->handle, p->osm, e->index, p->sweeping ? 0 : 1, p->found, &wants);
	release_signals(&saved);
	if (status)
		return -1;
	/* OpenSM programs SL-to-VL tables the slow way where there is a callback. */
	e->re->update_sl2vl = wants.sl2vl ? cb_sl2vl : NULL;
	e->re->update_vlarb = wants.vlarb ? cb_vlarb : NULL;
	e->re->path_sl = wants.path_sl ? cb_path_sl : NULL;
	return 0;
}

static int cb_fwd_tables(void *context)
{
	struct engine *e = context;
	sigset_t saved;
	int status;

	hold_signals(&saved);
	status = ibweaveWrite(e->plugin->handle, e->plugin->osm, e->index);
	release_signals(&saved);
	if (status < 0)
		return -1;
	/* As after a trap in the middle of a sweep: do_sweep() looks at its end. */
	if (status > 0)
		e->plugin->osm->subn.force_heavy_sweep = TRUE;
	return 0;
}

static void cb_destroy(void *context)
{
	struct engine *e = context;

	e->re = NULL;
}

static int setup(osm_routing_engine_t *re, osm_opensm_t *osm)
{
	struct engine *e = re->context;
	struct ibw_settings s;
	char ignored[512];
	sigset_t saved;
	int status;

	settings_take(osm, &s);
	ignored_take(&osm->subn.opt, ignored, sizeof(ignored));
	hold_signals(&saved);
	status = ibweaveSetup(e->plugin->handle, e->index, &s, ignored);
	release_signals(&saved);
	if (status < 0)
		return -1;
	e->plugin->shadow = status & 2;
	e->re = re;
	re->build_lid_matrices = cb_lid_matrices;
	re->ucast_build_fwd_tables = cb_fwd_tables;
	if (status & 1)
		re->mcast_build_stree = cb_multicast;
	re->destroy = cb_destroy;
	return 0;
}

/* What this OpenSM lacks, NULL for nothing. */
static const char *missing(void)
{
	static const struct {
		const char *name;
		const void *at;
	} needed[] = {
		{ "osm_register_external_routing_engine", osm_register_external_routing_engine },
		{ "osm_switch_set_hops", osm_switch_set_hops },
		{ "osm_mcast_tbl_set", osm_mcast_tbl_set },
		{ "osm_mcast_tbl_clear_mlid", osm_mcast_tbl_clear_mlid },
		{ "osm_link_is_throttled", osm_link_is_throttled },
		{ "osm_purge_mtree", osm_purge_mtree },
		{ "cl_qmap_get", cl_qmap_get },
	};
	size_t i;

	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!needed[i].at)
			return needed[i].name;
	return NULL;
}

static void destroy(void *data)
{
	struct plugin *p = data;
	sigset_t saved;
	int i;

	hold_signals(&saved);
	ibweaveClose(p->handle);
	release_signals(&saved);
	for (i = 0; i < p->num_engines; i++)
		free(p->engines[i].name);
	free(p->engines);
	free(p);
}

static void *create(struct osm_opensm *osm)
{
	struct plugin *p;
	const char *lacks = missing(), *refusal = ibw_refusal();
	sigset_t saved;
	int i;

	if (lacks || refusal) {
		char line[320];

		if (lacks)
			snprintf(line, sizeof(line), "ERR IBW4: this OpenSM has no %s", lacks);
		else
			snprintf(line, sizeof(line), "ERR IBW8: %s", refusal);
		ibw_log(osm, OSM_LOG_ERROR, line);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->osm = osm;
	hold_signals(&saved);
	p->handle = ibweaveOpen(osm, osm->subn.opt.event_plugin_options, osm->subn.opt.log_file, &p->num_engines);
	release_signals(&saved);
	p->engines = calloc(p->num_engines ? p->num_engines : 1, sizeof(*p->engines));
	if (!p->engines) {
		p->num_engines = 0;
		destroy(p);
		return NULL;
	}
	for (i = 0; i < p->num_engines; i++) {
		struct engine *e = &p->engines[i];
		external_routing_engine_module_t module;

		e->plugin = p;
		e->index = i;
		e->name = ibweaveEngineName(p->handle, i);
		module.name = e->name;
		module.setup = setup;
		module.context = e;
		/* It logs what is wrong itself: the name is taken. */
		(void)osm_register_external_routing_engine(osm, &module, e);
	}
	return p;
}

static void report(void *data, osm_epi_event_id_t event, void *event_data)
{
	struct plugin *p = data;

	(void)event_data;
	if (event == OSM_EVENT_ID_HEAVY_SWEEP_START || event == OSM_EVENT_ID_UCAST_ROUTING_DONE) {
		p->osm->subn.need_update |= p->need_update; /* of links and the like it knows nothing */
		p->need_update = 0;
		p->found = 0;
	}
	/* Its console's "reroute" has the second without the first (do_sweep()). */
	if (event == OSM_EVENT_ID_HEAVY_SWEEP_START)
		p->sweeping = 1;
	else if (event == OSM_EVENT_ID_UCAST_ROUTING_DONE)
		p->sweeping = 0;
	else if (event == OSM_EVENT_ID_SUBNET_UP) {
		sigset_t saved;

		hold_signals(&saved);
		ibweaveSubnetUp(p->handle);
		release_signals(&saved);
	}
}

/* OpenSM loads no plugin whose version is not its own, to the letter. */
osm_event_plugin_t osm_event_plugin = {
	OSM_VERSION,
	create,
	destroy,
	report,
};
