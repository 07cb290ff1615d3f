"""facenet-pytorch: its shipped weights for faces, MTCNN, and the network for embeddings."""

import warnings

warnings.simplefilter("ignore")
import torch
from facenet_pytorch import MTCNN, InceptionResnetV1
from numbers_made import array, fill, show

net = MTCNN(image_size=96)
x = torch.tensor(array(1, 3, 60, 60)).float()
show("pnet", *net.pnet(x))
show("rnet", *net.rnet(torch.tensor(array(2, 3, 24, 24)).float()))
show("onet", *net.onet(torch.tensor(array(2, 3, 48, 48)).float()))
show(
    "resnet", fill(InceptionResnetV1(classify=True, num_classes=5)).eval()(torch.tensor(array(1, 3, 100, 100)).float())
)
