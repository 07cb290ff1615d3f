"""torch-geometric: convolutions of graphs with gradients, batches of graphs, pooling, and functions of edges."""

import torch
from numbers_made import array, fill, show
from torch_geometric import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import add_self_loops, degree, scatter, softmax, to_dense_adj

edges, x = torch.tensor(array(2, 30, low=0, high=10)), torch.tensor(array(10, 4)).float()
for name, layer in {
    "GCN": nn.GCNConv(4, 3),
    "GAT": nn.GATConv(4, 3, heads=2),
    "SAGE": nn.SAGEConv(4, 3),
    "GIN": nn.GINConv(torch.nn.Linear(4, 3)),
    "transformer": nn.TransformerConv(4, 3),
    "edges": nn.EdgeConv(torch.nn.Linear(8, 3)),
    "graph": nn.GraphConv(4, 3),
    "chebyshev": nn.ChebConv(4, 3, K=2),
}.items():
    out = fill(layer)(x, edges)
    out.square().sum().backward()
    show(name, out, *[p.grad for p in layer.parameters()][:2])
kinds = torch.tensor(array(30, low=0, high=2))
show("relations", fill(nn.RGCNConv(4, 3, 2))(x, edges, kinds))
graphs = [
    Data(x=torch.tensor(array(5, 4, seed=i)).float(), edge_index=torch.tensor(array(2, 8, seed=i, low=0, high=5)))
    for i in range(4)
]
for batch in DataLoader(graphs, batch_size=2):
    show("batch", batch.x, batch.edge_index, batch.batch, nn.global_mean_pool(batch.x, batch.batch))
values = torch.tensor(array(30)).float()
show("edges", to_dense_adj(edges), degree(edges[0], 10), add_self_loops(edges)[0])
show("scattered", softmax(values, edges[0]), scatter(values, edges[0], reduce="max"), scatter(values, edges[0]))
