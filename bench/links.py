"""Networks of namespaces beside the one bridge of two_nodes.py: a rate for each pair of nodes, and two bridges."""

from two_nodes import Nodes, need


class PairNodes(Nodes):
    """A rate from each node to every other, independent of the rest of its card's traffic, as if every two had a link."""

    def shape(self, node):
        card = [*self.inside(node), "tc"]
        need(*card, "qdisc", "add", "dev", "card", "root", "handle", "1:", "htb")
        for other in range(self.count):
            if other == node:
                continue
            flow = f"1:{other + 1}"
            need(*card, "class", "add", "dev", "card", "parent", "1:", "classid", flow, "htb", "rate",
                 f"{8 * self.rate}bit", "burst", "128kb", "cburst", "128kb", "quantum", "60000")
            need(*card, "filter", "add", "dev", "card", "parent", "1:", "protocol", "ip", "u32", "match", "ip", "dst",
                 f"{self.address(other)}/32", "flowid", flow)


class TwoBridges(Nodes):
    """Half of the nodes on either bridge, and a link between the bridges with a rate of its own each way."""

    def __init__(self, folder, rate, count, link_rate):
        super().__init__(folder, rate, count)
        self.link_rate = link_rate

    def wire(self):
        for bridge in ("bridge0", "bridge1"):
            self.add_bridge(bridge)
        for node in range(self.count):
            self.plug(node, f"bridge{2 * node // self.count}")
            self.shape(node)
        between = [*self.inside(self.count), "ip", "link"]
        need(*between, "add", "join0", "mtu", "9000", "type", "veth", "peer", "name", "join1", "mtu", "9000")
        for side in (0, 1):
            need(*between, "set", f"join{side}", "master", f"bridge{side}", "up")
            self.limit(self.count, f"join{side}", self.link_rate)
